"""A definition as plain data, with the place of every value and key in the text it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidemark.compiler.diagnostics.diagnostic import Diagnostic, Mark, Path, Problem, show_path

QUOTES = ('"', "'")


@dataclass(frozen=True)
class Document:
    """`data` is what JSON can hold: dicts with text keys, lists, text, numbers, booleans and None."""

    data: object
    values: Mapping[Path, Mark] = field(default_factory=dict)
    keys: Mapping[Path, Mark] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    def diagnose(self, problems: Iterable[Problem]) -> tuple[Diagnostic, ...]:
        """The problems with their positions, in the order of the text."""
        placed = [self._place(problem) for problem in problems]
        return tuple(sorted(dict.fromkeys(placed), key=lambda found: (found.line or 0, found.column or 0)))

    def _place(self, problem: Problem) -> Diagnostic:
        mark = self._mark(problem)
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        where = show_path(problem.path)
        return Diagnostic(problem.code, problem.message, problem.hint, where, line, column, problem.severity)

    def _mark(self, problem: Problem) -> Mark | None:
        if problem.mark is not None:
            return problem.mark
        if problem.at_key and problem.path in self.keys:
            return self.keys[problem.path]
        mark = self.values.get(problem.path)
        if mark is not None:
            return mark if problem.offset is None else self._inside(mark, problem.path, problem.offset)
        return self._parent(problem.path)

    def _parent(self, path: Path) -> Mark | None:
        for length in range(len(path) - 1, -1, -1):
            mark = self.keys.get(path[:length]) or self.values.get(path[:length])
            if mark is not None:
                return mark
        return None

    def _inside(self, mark: Mark, path: Path, offset: int) -> Mark:
        """Where a character of a scalar stands; the scalar's start when its lines were folded or escaped."""
        text = self._text(path)
        if mark.style == "|":
            return self._inside_block(mark, text, offset)
        start = mark.column + (1 if mark.style in QUOTES else 0)
        written = self.lines[mark.line][start : start + len(text)] if mark.line < len(self.lines) else ""
        return Mark(mark.line, start + offset) if written == text else mark

    def _inside_block(self, mark: Mark, text: str, offset: int) -> Mark:
        before = text[:offset]
        row = before.count("\n")
        content = text.split("\n")[row]
        line = mark.line + 1 + row
        if line >= len(self.lines) or not self.lines[line].endswith(content):
            return mark
        indent = len(self.lines[line]) - len(content)
        return Mark(line, indent + len(before) - (before.rfind("\n") + 1))

    def _text(self, path: Path) -> str:
        value = self.data
        for part in path:
            if isinstance(value, dict) and isinstance(part, str):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int):
                value = value[part]
        return value if isinstance(value, str) else ""
