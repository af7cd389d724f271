"""Collects what is wrong with one part of the graph while it is built, and the checks all parts share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidemark.compiler.diagnostics.diagnostic import Path, Problem, errors
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.compiler.graph.expressions import Checked, CheckedAggregate, ExpressionProblem, check, check_aggregate
from tidemark.compiler.graph.node import RESERVED, Columns
from tidemark.compiler.plan.plan import Expression
from tidemark.schema import Type, TypeSyntaxError, parse_type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class Checker:
    """One for each source, operator and sink; paths are relative to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def failed(self) -> bool:
        return bool(errors(self.problems))

    def refuse(self, code: str, message: str, hint: str, *path: str | int, offset: int | None = None) -> None:
        at_key = not path
        self.problems.append(Problem(code, message, hint, (*self.path, *path), offset, at_key))

    def not_available(self, what: str, *path: str | int, hint: str = "Leave it out for now.") -> None:
        problem = Problem("not_available", f"{what} is not available yet", hint, (*self.path, *path), at_key=True)
        self.problems.append(problem)

    def add(self, problems: Iterable[Problem], *path: str | int) -> None:
        self.problems.extend(problem.below(*self.path, *path) for problem in problems)

    def expression(self, text: str, scope: Columns, *path: str | int) -> Checked | None:
        try:
            return check(text, scope)
        except ExpressionProblem as problem:
            self._inside(problem, path)
            return None

    def aggregate(self, text: str, scope: Columns, *path: str | int) -> CheckedAggregate | None:
        try:
            return check_aggregate(text, scope)
        except ExpressionProblem as problem:
            self._inside(problem, path)
            return None

    def boolean(self, text: str, scope: Columns, *path: str | int) -> Checked | None:
        checked = self.expression(text, scope, *path)
        if checked is None or checked.type.name == "boolean":
            return checked
        hint = "Write a comparison, such as `amount > 0`."
        self.refuse("not_boolean", f"a condition must be true or false, and this is {checked.type}", hint, *path)
        return None

    def column(self, name: str, columns: Columns, *path: str | int) -> Type | None:
        """The type of a column that must exist."""
        if name in columns:
            return columns[name]
        hint = hint_for(name, columns, what="columns")
        self.refuse("unknown_column", f"there is no column `{name}` here", hint, *path)
        return None

    def comparable(self, name: str, type_: Type, *path: str | int) -> None:
        """A column that rows are grouped by: a map has no equality."""
        if "map<" in str(type_):
            hint = "Choose another column, or an expression over it."
            self.refuse("wrong_column_type", f"`{name}` is {type_}, and maps cannot be compared", hint, *path)

    def new_names(self, names: Iterable[str], taken: Mapping[str, str], *path: str | int) -> None:
        """Names a part introduces; `taken` says by whom a name is in use already."""
        owners = {name.lower(): owner for name, owner in taken.items()}
        for name in names:
            self._new_name(name, owners.get(name.lower()), (*path, name))
            owners.setdefault(name.lower(), "another one of them, in another case")

    def new_name(self, name: str, taken: Iterable[str], *path: str | int) -> None:
        """One name, at a path of its own."""
        owner = "a column" if name.lower() in {other.lower() for other in taken} else None
        self._new_name(name, owner, path)

    def _new_name(self, name: str, owner: str | None, path: Path) -> None:
        if not _NAME.fullmatch(name):
            hint = "A name begins with a letter or _, then has letters, digits or _, 128 characters at most."
            self.refuse("bad_name", f"`{name[:60]}` cannot be the name of a column", hint, *path)
        elif name.lower() in RESERVED or name.startswith("__"):
            hint = "Choose another name; those of the engine begin with _."
            self.refuse("name_collision", f"`{name}` is a name the engine uses itself", hint, *path)
        elif owner is not None:
            self.refuse("name_collision", f"`{name}` is already the name of {owner}", "Choose another name.", *path)

    def schema(self, written: Mapping[str, str], *path: str | int) -> dict[str, Type]:
        """The columns whose type could be read."""
        columns: dict[str, Type] = {}
        self.new_names(written, {}, *path)
        for name, text in written.items():
            try:
                columns[name] = parse_type(text)
            except TypeSyntaxError as error:
                hint = "Types are string, int, long, double, boolean, date, timestamp, decimal(p,s), array<…> and more."
                self.refuse(
                    "bad_type", f"`{text}` is not a column type: {error}", hint, *path, name, offset=error.offset
                )
        return columns

    def _inside(self, problem: ExpressionProblem, path: Path) -> None:
        hint = problem.hint or "See the reference of expressions."
        self.refuse(problem.code, problem.message, hint, *path, offset=problem.offset)


def as_expression(checked: Checked) -> Expression:
    return Expression(sql=checked.sql, type=str(checked.type))


def column_expression(name: str, type_: Type) -> Expression:
    """A column as it is; its name is quoted, for it may be a word of SQL."""
    return Expression(sql=f"`{name}`", type=str(type_))
