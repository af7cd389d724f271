"""`flat_map` makes one event of each element of an array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import Text
from tidemark.compiler.graph.checker import Checker, as_expression
from tidemark.compiler.graph.node import MAIN, OperatorNode
from tidemark.compiler.graph.operators.operator import Input, OperatorType
from tidemark.compiler.plan.plan import Expression, FlatMapPlan


class FlatMapFields(OneInput):
    type: Literal["flat_map"]
    each: Text
    name: Text = Field(alias="as")


@dataclass(frozen=True)
class FlatMapNode(OperatorNode):
    each: Expression
    name: str

    def plan(self) -> FlatMapPlan:
        return FlatMapPlan(id=self.id, inputs=self.reads, output=self.output, each=self.each, name=self.name)


def build(id_: str, fields: FlatMapFields, inputs: tuple[Input, ...], checker: Checker) -> FlatMapNode | None:
    (source,) = inputs
    checker.new_name(fields.name, source.stream.columns, "as")
    each = checker.expression(fields.each, source.stream.scope, "each")
    if each is not None and each.type.name != "array":
        hint = "Write something like `split(text, ' ')`."
        checker.refuse("not_an_array", f"`each` must be an array, and this is {each.type}", hint, "each")
    if each is None or checker.failed():
        return None
    output = replace(source.stream, columns={**source.stream.columns, fields.name: each.type.items[0]})
    return FlatMapNode(id_, (source.reference,), {MAIN: output}, as_expression(each), fields.name)


FLAT_MAP = OperatorType("flat_map", FlatMapFields, build, ("main",), "Makes one event of each element of `each`.")
