"""`filter` keeps the events for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import Text
from tidemark.compiler.graph.checker import Checker, as_expression
from tidemark.compiler.graph.node import MAIN, OperatorNode
from tidemark.compiler.graph.operators.operator import Input, OperatorType
from tidemark.compiler.plan.plan import Expression, FilterPlan


class FilterFields(OneInput):
    type: Literal["filter"]
    where: Text


@dataclass(frozen=True)
class FilterNode(OperatorNode):
    where: Expression

    def plan(self) -> FilterPlan:
        return FilterPlan(id=self.id, inputs=self.reads, output=self.output, where=self.where)


def build(id_: str, fields: FilterFields, inputs: tuple[Input, ...], checker: Checker) -> FilterNode | None:
    (source,) = inputs
    where = checker.boolean(fields.where, source.stream.scope, "where")
    if where is None:
        return None
    return FilterNode(id_, (source.reference,), {MAIN: source.stream}, as_expression(where))


FILTER = OperatorType("filter", FilterFields, build, ("main",), "Keeps the events for which `where` is true.")
