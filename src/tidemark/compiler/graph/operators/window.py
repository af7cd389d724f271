"""`window` aggregates per key and window of event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from tidemark.compiler.definition.job import OneInput
from tidemark.compiler.definition.model import Duration, Key, Text, milliseconds
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.node import LATE, LATENESS, MAIN, WINDOW_BOUNDS, Columns, OperatorNode, Stream, late_stream
from tidemark.compiler.graph.operators.grouping import aggregate_columns, key_columns, read_aggregates, read_key
from tidemark.compiler.graph.operators.operator import (
    Input,
    OperatorType,
    refuse_state_after,
    refuse_updates_after_close,
)
from tidemark.compiler.graph.operators.window_kinds import WindowDefinition, read_window
from tidemark.compiler.plan.plan import Aggregate, Named, WindowPlan, WindowSpec

FIELDS_TO_COME = ("updates", "trigger", "skew")


class WindowFields(OneInput):
    type: Literal["window"]
    key: Key = Field(default_factory=list)
    window: WindowDefinition
    aggregate: Annotated[dict[str, Text], Field(min_length=1)]
    emit: Literal["on_close", "on_update"] = "on_close"
    allowed_lateness: Duration = "0s"
    updates: Any = None
    trigger: Any = None
    skew: Any = None


@dataclass(frozen=True)
class WindowNode(OperatorNode):
    stateful: ClassVar[bool] = True
    late_adds: ClassVar[Columns] = {**WINDOW_BOUNDS, **LATENESS}

    key: tuple[Named, ...]
    window: WindowSpec
    aggregate: tuple[Aggregate, ...]
    emit: Literal["on_close", "on_update"]

    def plan(self) -> WindowPlan:
        return WindowPlan(
            id=self.id,
            inputs=self.reads,
            output=self.output,
            key=self.key,
            window=self.window,
            aggregate=self.aggregate,
            emit=self.emit,
        )


def build(id_: str, fields: WindowFields, inputs: tuple[Input, ...], checker: Checker) -> WindowNode | None:
    (source,) = inputs
    refuse_state_after(source, checker, "window")
    _check_emission(fields, source, checker)
    window = read_window(fields.window, checker)
    scope = source.stream.scope
    key = read_key(fields.key, scope, WINDOW_BOUNDS, checker)
    added = {**key_columns(key), **WINDOW_BOUNDS}
    aggregates = read_aggregates(fields.aggregate, scope, added, checker)
    if window is None or checker.failed():
        return None
    columns = {**added, **aggregate_columns(aggregates)}
    main = Stream(columns, table=id_) if fields.emit == "on_update" else Stream(columns, closed=id_)
    ports = {MAIN: main, LATE: late_stream(id_, source.stream.columns, WindowNode.late_adds)}
    return WindowNode(id_, (source.reference,), ports, key, window, aggregates, fields.emit)


def _check_emission(fields: WindowFields, source: Input, checker: Checker) -> None:
    if fields.emit == "on_update":
        refuse_updates_after_close(source, checker, "`emit: on_update`")
        if fields.window.session is not None:
            hint = "Use `emit: on_close`, or a tumbling or sliding window."
            message = "a session window cannot emit on update: its bounds still move"
            checker.refuse("session_on_update", message, hint, "emit")
    if milliseconds(fields.allowed_lateness) > 0:
        hint = "Leave it out; a larger `watermark: {delay: …}` waits longer before a window closes."
        checker.not_available("`allowed_lateness` above zero", "allowed_lateness", hint=hint)
    for name in FIELDS_TO_COME:
        if name in fields.model_fields_set:
            checker.not_available(f"`{name}`", name)


WINDOW = OperatorType("window", WindowFields, build, ("main", "late"), "Aggregates per key and window of event time.")
