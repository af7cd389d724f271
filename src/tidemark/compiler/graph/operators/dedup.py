"""`dedup` keeps the first of equal events whose times lie within a span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import PositiveDuration, Text, milliseconds
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.node import LATE, LATENESS, MAIN, Columns, OperatorNode, late_stream
from tidemark.compiler.graph.operators.operator import Input, OperatorType, refuse_state_after
from tidemark.compiler.plan.plan import DedupPlan


class DedupFields(OneInput):
    type: Literal["dedup"]
    by: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)] = ("_event_id",)
    within: PositiveDuration


@dataclass(frozen=True)
class DedupNode(OperatorNode):
    stateful: ClassVar[bool] = True
    late_adds: ClassVar[Columns] = LATENESS

    by: tuple[str, ...]
    within_ms: int

    def plan(self) -> DedupPlan:
        return DedupPlan(id=self.id, inputs=self.reads, output=self.output, by=self.by, within_ms=self.within_ms)


def build(id_: str, fields: DedupFields, inputs: tuple[Input, ...], checker: Checker) -> DedupNode | None:
    (source,) = inputs
    refuse_state_after(source, checker, "dedup")
    for index, name in enumerate(fields.by):
        type_ = checker.column(name, source.stream.scope, "by", index)
        if type_ is not None:
            checker.comparable(name, type_, "by", index)
    if checker.failed():
        return None
    ports = {MAIN: source.stream, LATE: late_stream(id_, source.stream.columns, DedupNode.late_adds)}
    return DedupNode(id_, (source.reference,), ports, tuple(dict.fromkeys(fields.by)), milliseconds(fields.within))


DEDUP = OperatorType("dedup", DedupFields, build, ("main", "late"), "Keeps the first of equal events within a span.")
