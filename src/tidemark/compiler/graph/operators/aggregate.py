"""`aggregate` keeps a running aggregate per key and emits the rows that changed in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import Key, Text
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.node import MAIN, OperatorNode, Stream
from tidemark.compiler.graph.operators.grouping import aggregate_columns, key_columns, read_aggregates, read_key
from tidemark.compiler.graph.operators.operator import (
    Input,
    OperatorType,
    refuse_state_after,
    refuse_updates_after_close,
)
from tidemark.compiler.plan.plan import Aggregate, AggregatePlan, Named


class AggregateFields(OneInput):
    type: Literal["aggregate"]
    key: Key = Field(default_factory=list)
    aggregate: Annotated[dict[str, Text], Field(min_length=1)]
    ttl: Any = None
    skew: Any = None


@dataclass(frozen=True)
class AggregateNode(OperatorNode):
    stateful: ClassVar[bool] = True

    key: tuple[Named, ...]
    aggregate: tuple[Aggregate, ...]

    def plan(self) -> AggregatePlan:
        return AggregatePlan(id=self.id, inputs=self.reads, output=self.output, key=self.key, aggregate=self.aggregate)


def build(id_: str, fields: AggregateFields, inputs: tuple[Input, ...], checker: Checker) -> AggregateNode | None:
    (source,) = inputs
    refuse_state_after(source, checker, "aggregate")
    refuse_updates_after_close(source, checker, "aggregate")
    for name in ("ttl", "skew"):
        if name in fields.model_fields_set:
            checker.not_available(f"`{name}`", name)
    scope = source.stream.scope
    key = read_key(fields.key, scope, {}, checker)
    aggregates = read_aggregates(fields.aggregate, scope, key_columns(key), checker)
    if checker.failed():
        return None
    output = Stream({**key_columns(key), **aggregate_columns(aggregates)}, table=id_)
    return AggregateNode(id_, (source.reference,), {MAIN: output}, key, aggregates)


AGGREGATE = OperatorType(
    "aggregate", AggregateFields, build, ("main",), "A running aggregate per key; emits the rows that changed."
)
