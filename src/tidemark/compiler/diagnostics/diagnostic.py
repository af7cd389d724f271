"""The two forms of a finding: a `Problem` knows its path in the definition, a `Diagnostic` its place in the text.

Stages report problems; the position is looked up once, at the end, so that a definition without a text
(the Python builder's) is checked by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Path = tuple[str | int, ...]
Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Mark:
    """A place in the text, counted from 0; `style` is how a scalar was written, None for a plain one."""

    line: int
    column: int
    style: str | None = None


@dataclass(frozen=True)
class Problem:
    """A finding at `path`: at its value, or at its name with `at_key`, or `offset` characters inside its text.

    A `mark` says where when the path alone cannot.
    """

    code: str
    message: str
    hint: str | None = None
    path: Path = ()
    offset: int | None = None
    at_key: bool = False
    mark: Mark | None = None
    severity: Severity = "error"

    def below(self, *parents: str | int) -> Problem:
        """The same problem seen from further up the definition."""
        return replace(self, path=(*parents, *self.path))


@dataclass(frozen=True)
class Diagnostic:
    """What a user is told. `line` and `column` count from 1; None when the definition has no text."""

    code: str
    message: str
    hint: str | None
    path: str
    line: int | None
    column: int | None
    severity: Severity = "error"


def show_path(path: Path) -> str:
    """`operators.per_min.key[0]`."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return shown.removeprefix(".")


def errors(problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]
