"""`map` computes columns: `select` says all of them, `set` and `drop` change some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import Text, Texts
from tidemark.compiler.graph.checker import Checker, as_expression, column_expression
from tidemark.compiler.graph.expressions import Checked
from tidemark.compiler.graph.node import MAIN, SYSTEM, Columns, OperatorNode, Stream
from tidemark.compiler.graph.operators.operator import Input, OperatorType
from tidemark.compiler.plan.plan import Expression, MapPlan, Named
from tidemark.schema import Type


class MapFields(OneInput):
    type: Literal["map"]
    select: dict[str, Text] | None = None
    set: dict[str, Text] | None = None
    drop: Texts = ()


@dataclass(frozen=True)
class MapNode(OperatorNode):
    """`select` leaves the system columns out: every event carries them anyway."""

    select: tuple[Named, ...]

    def plan(self) -> MapPlan:
        return MapPlan(id=self.id, inputs=self.reads, output=self.output, select=self.select)


def build(id_: str, fields: MapFields, inputs: tuple[Input, ...], checker: Checker) -> MapNode | None:
    (source,) = inputs
    _check_form(fields, checker)
    if checker.failed():
        return None
    columns = _select(fields, source.stream, checker) if fields.select else _change(fields, source.stream, checker)
    if checker.failed():
        return None
    output = replace(source.stream, columns={name: type_ for name, (type_, _) in columns.items()})
    select = tuple(Named(name=name, expression=sql) for name, (_, sql) in columns.items() if name not in SYSTEM)
    return MapNode(id_, (source.reference,), {MAIN: output}, select)


def _check_form(fields: MapFields, checker: Checker) -> None:
    if fields.select is not None and (fields.set is not None or fields.drop):
        hint = "Use `select` for all columns, or `set` and `drop` for some."
        checker.refuse("bad_value", "`select` cannot stand beside `set` or `drop`", hint, "select")
    elif not (fields.select or fields.set or fields.drop):
        checker.refuse(
            "missing_field", "`select` is missing", "Write `select: {name: expression}`, or `set` or `drop`."
        )


Computed = dict[str, tuple[Type, Expression]]


def _select(fields: MapFields, stream: Stream, checker: Checker) -> Computed:
    checker.new_names(fields.select or {}, {}, "select")
    return _computed(fields.select or {}, stream, checker, "select")


def _change(fields: MapFields, stream: Stream, checker: Checker) -> Computed:
    written = fields.set or {}
    kept: Columns = stream.columns
    checker.new_names(written, {name: "a column" for name in kept if name not in written}, "set")
    for index, name in enumerate(fields.drop):
        checker.column(name, {name: type_ for name, type_ in kept.items() if name not in written}, "drop", index)
    columns = {name: (type_, column_expression(name, type_)) for name, type_ in kept.items()}
    columns |= _computed(written, stream, checker, "set")
    left = {name: column for name, column in columns.items() if name not in fields.drop}
    if not left:
        checker.refuse("bad_value", "no column is left", "Keep at least one column.", "drop")
    return left


def _computed(written: dict[str, str], stream: Stream, checker: Checker, field: str) -> Computed:
    checked: dict[str, Checked | None] = {
        name: checker.expression(text, stream.scope, field, name) for name, text in written.items()
    }
    return {name: (found.type, as_expression(found)) for name, found in checked.items() if found}


MAP = OperatorType("map", MapFields, build, ("main",), "Computes columns: `select` all, or `set` and `drop` some.")
