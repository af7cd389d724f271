"""One source or operator of a plan in a few lines of plain English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidemark.compiler.plan.plan import (
    Aggregate,
    AggregatePlan,
    AnyOperator,
    BranchPlan,
    Column,
    DedupPlan,
    FilterPlan,
    FlatMapPlan,
    MapPlan,
    Named,
    SessionWindow,
    SlidingWindow,
    SourcePlan,
    TumblingWindow,
    WindowPlan,
    WindowSpec,
)

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def duration(milliseconds: int) -> str:
    """In the largest unit that says it exactly."""
    for unit, size in _UNITS:
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def show_columns(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def describe_source(source: SourcePlan) -> Iterator[str]:
    partitions = source.options.get("partitions") or 1
    yield f"{source.connector}, format {source.format}, {partitions} partition{'' if partitions == 1 else 's'}"
    yield f"columns: {show_columns(source.columns)}"
    time, id_ = source.event_time or "its own", source.event_id or "its place"
    yield f"event time: {time}; id: {id_}; key: {source.key or 'none'}"
    policy = source.watermark
    yield (
        f"watermark: the largest event time of each partition minus {duration(policy.delay_ms)}, the smallest of them;"
        f" idle after {duration(policy.idle_timeout_ms)}; up to {duration(policy.max_future_ms)} ahead is accepted"
    )


def describe_operator(operator: AnyOperator) -> Iterator[str]:
    yield f"reads: {', '.join(operator.inputs)}"
    yield from _meaning(operator)
    yield f"columns: {show_columns(operator.output)}"


def _meaning(operator: AnyOperator) -> Iterator[str]:
    match operator:
        case FilterPlan():
            yield f"keeps: {operator.where.sql}"
        case MapPlan():
            yield f"computes: {_named(operator.select)}"
        case FlatMapPlan():
            yield f"one event for each element of {operator.each.sql}, as {operator.name}"
        case BranchPlan():
            yield f"first match goes to: {_named(operator.when)}; the rest to main"
        case DedupPlan():
            yield f"first of equal {', '.join(operator.by)} within {duration(operator.within_ms)}"
        case WindowPlan():
            when = "when the watermark reaches the end" if operator.emit == "on_close" else "changed rows in each epoch"
            yield f"{_window(operator.window)}; key: {_named(operator.key) or 'none'}; emits {when}"
            yield f"aggregates: {_aggregates(operator.aggregate)}"
        case AggregatePlan():
            yield f"running; key: {_named(operator.key) or 'none'}; emits changed rows in each epoch"
            yield f"aggregates: {_aggregates(operator.aggregate)}"
        case _:
            yield "puts its inputs together"


def _window(window: WindowSpec) -> str:
    match window:
        case TumblingWindow():
            return f"tumbling window of {duration(window.size_ms)}{_offset(window.offset_ms)}"
        case SlidingWindow():
            size, every = duration(window.size_ms), duration(window.every_ms)
            return f"sliding window of {size} every {every}{_offset(window.offset_ms)}"
        case SessionWindow():
            return f"session window with a gap of {duration(window.gap_ms)}"


def _offset(milliseconds: int) -> str:
    return f", offset {duration(milliseconds)}" if milliseconds else ""


def _named(items: Iterable[Named]) -> str:
    return ", ".join(
        item.name if item.expression.sql == f"`{item.name}`" else f"{item.name} = {item.expression.sql}"
        for item in items
    )


def _aggregates(aggregates: Iterable[Aggregate]) -> str:
    return ", ".join(f"{aggregate.name} = {_call(aggregate)}" for aggregate in aggregates)


def _call(aggregate: Aggregate) -> str:
    arguments = (*(argument.sql for argument in aggregate.arguments), *map(str, aggregate.parameters))
    return f"{aggregate.function}({', '.join(arguments)})"
