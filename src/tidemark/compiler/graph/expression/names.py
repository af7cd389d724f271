"""The names an expression can read: the columns of its input and, inside a lambda, the lambda's own."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from tidemark.compiler.graph.expression.literals import column_sql
from tidemark.compiler.graph.expression.result import Checked, Refusal, Scope
from tidemark.schema import Type


class Names:
    """Names are found as Spark finds them, without regard to case."""

    def __init__(self, columns: Scope, variables: Scope | None = None) -> None:
        self.columns = columns
        self.variables = variables or {}

    def inside(self, variables: Iterable[tuple[str, Type]]) -> Names:
        """The names within a lambda; its own hide columns and outer ones."""
        return Names(self.columns, {**self.variables, **{name.lower(): type_ for name, type_ in variables}})

    def find(self, name: str) -> Checked | None:
        variable = self.variables.get(name.lower())
        if variable is not None:
            return Checked(column_sql(name), variable, frozenset((name.lower(),)))
        matches = [column for column in self.columns if column.lower() == name.lower()]
        if len(matches) > 1:
            raise Refusal(f"{name} can mean {' or '.join(matches)}", "rename one of them", code="ambiguous_column")
        return self._column(matches[0]) if matches else None

    def _column(self, name: str) -> Checked:
        if "${" in name:
            raise Refusal(
                f"the column name {name} cannot be used", "rename it without ${", code="expression_not_allowed"
            )
        return Checked(column_sql(name), self.columns[name].decoded, frozenset((name,)))

    def unknown(self, name: str) -> Refusal:
        known = list(dict.fromkeys((*self.variables, *self.columns)))
        near = near_name(name, known)
        suggestion = f"did you mean {near}? " if near else ""
        return Refusal(
            f"there is no column {name}",
            f"{suggestion}the columns are {', '.join(known) or 'none'}",
            code="unknown_column",
        )


def near_name(name: str, known: Iterable[str]) -> str | None:
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[found[0]] if found else None
