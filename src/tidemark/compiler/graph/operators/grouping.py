"""Keys and aggregates, which `window` and `aggregate` share."""

from __future__ import annotations

from tidemark.compiler.graph.checker import Checker, as_expression, column_expression
from tidemark.compiler.graph.expressions import CheckedAggregate
from tidemark.compiler.graph.node import SYSTEM, Columns
from tidemark.compiler.plan.plan import Aggregate, Named
from tidemark.schema import Type, parse_type


def read_key(key: list[str] | dict[str, str], scope: Columns, taken: Columns, checker: Checker) -> tuple[Named, ...]:
    """The key columns in order; names that are refused are left out."""
    owners = dict.fromkeys(taken, "a column that the window adds")
    if isinstance(key, dict):
        checker.new_names(key, owners, "key")
        return _computed(key, scope, checker)
    found = [_column(name, index, key, scope, checker) for index, name in enumerate(key)]
    for index, name in enumerate(key):
        if name in taken:
            hint = "Give it another name: `key: {name: expression}`."
            checker.refuse("name_collision", f"`{name}` is already the name of {owners[name]}", hint, "key", index)
    return tuple(named for named in found if named)


def _column(name: str, index: int, key: list[str], scope: Columns, checker: Checker) -> Named | None:
    if name in SYSTEM:
        hint = f"Give it a name of your own: `key: {{name: {name}}}`."
        checker.refuse("name_collision", f"a result cannot have a column `{name}`", hint, "key", index)
        return None
    if name in key[:index]:
        checker.refuse("duplicate_field", f"`{name}` is in the key twice", "Keep one of them.", "key", index)
        return None
    type_ = checker.column(name, scope, "key", index)
    if type_ is None:
        return None
    checker.comparable(name, type_, "key", index)
    return Named(name=name, expression=column_expression(name, type_))


def _computed(key: dict[str, str], scope: Columns, checker: Checker) -> tuple[Named, ...]:
    named = []
    for name, text in key.items():
        checked = checker.expression(text, scope, "key", name)
        if checked is not None:
            checker.comparable(name, checked.type, "key", name)
            named.append(Named(name=name, expression=as_expression(checked)))
    return tuple(named)


def read_aggregates(written: dict[str, str], scope: Columns, taken: Columns, checker: Checker) -> tuple[Aggregate, ...]:
    checker.new_names(written, dict.fromkeys(taken, "a key or window column"), "aggregate")
    found = {name: checker.aggregate(text, scope, "aggregate", name) for name, text in written.items()}
    return tuple(_aggregate(name, checked) for name, checked in found.items() if checked)


def _aggregate(name: str, checked: CheckedAggregate) -> Aggregate:
    return Aggregate(
        name=name,
        function=checked.function,
        arguments=tuple(map(as_expression, checked.arguments)),
        parameters=checked.parameters,
        type=str(checked.type),
    )


def key_columns(key: tuple[Named, ...]) -> dict[str, Type]:
    return {named.name: parse_type(named.expression.type) for named in key}


def aggregate_columns(aggregates: tuple[Aggregate, ...]) -> dict[str, Type]:
    return {aggregate.name: parse_type(aggregate.type) for aggregate in aggregates}
