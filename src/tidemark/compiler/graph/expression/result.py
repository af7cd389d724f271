"""What reading an expression gives: a checked expression, or a problem that points into the text.

Only the values live here; they are shared by the parser, the checker and the tables of functions and aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.schema import Type

Scope = Mapping[str, Type]


class ExpressionProblem(Exception):
    """An expression that is refused. `offset` is the 0-based character of the text where the cause stands."""

    def __init__(self, code: str, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset
        self.hint = hint


class Refusal(Exception):
    """A rule says no, in the user's words. The checker knows the place and turns it into an ExpressionProblem."""

    def __init__(self, message: str, hint: str | None = None, *, code: str = "bad_argument") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Checked:
    """Spark SQL that holds nothing but what was understood, its type and the columns it reads.

    `literal` is the value when the expression is a plain constant, else None.
    """

    sql: str
    type: Type
    columns: frozenset[str] = frozenset()
    literal: object | None = None
