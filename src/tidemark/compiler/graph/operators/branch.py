"""`branch` sends each event to the first port whose condition is true, else to main."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import Id, Text
from tidemark.compiler.graph.checker import Checker, as_expression
from tidemark.compiler.graph.node import MAIN, SIDE_PORTS, OperatorNode
from tidemark.compiler.graph.operators.operator import Input, OperatorType
from tidemark.compiler.plan.plan import BranchPlan, Named

RESERVED_PORTS = (MAIN, *SIDE_PORTS)


class BranchFields(OneInput):
    type: Literal["branch"]
    when: Annotated[dict[Id, Text], Field(min_length=1)]


@dataclass(frozen=True)
class BranchNode(OperatorNode):
    when: tuple[Named, ...]

    def plan(self) -> BranchPlan:
        return BranchPlan(id=self.id, inputs=self.reads, output=self.output, when=self.when)


def build(id_: str, fields: BranchFields, inputs: tuple[Input, ...], checker: Checker) -> BranchNode | None:
    (source,) = inputs
    for name in fields.when:
        if name in RESERVED_PORTS:
            checker.refuse("name_collision", f"a port cannot be called `{name}`", "Choose another name.", "when", name)
    conditions = {name: checker.boolean(text, source.stream.scope, "when", name) for name, text in fields.when.items()}
    if checker.failed():
        return None
    when = tuple(Named(name=name, expression=as_expression(found)) for name, found in conditions.items() if found)
    ports = dict.fromkeys((MAIN, *fields.when), source.stream)
    return BranchNode(id_, (source.reference,), ports, when)


BRANCH = OperatorType(
    "branch",
    BranchFields,
    build,
    ("main",),
    "Sends an event to the first port whose condition is true, the rest to main.",
)
