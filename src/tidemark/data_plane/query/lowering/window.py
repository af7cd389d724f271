"""Windows and running aggregates on Spark's own stateful operators."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import (
    AggregatePlan,
    Named,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    WindowPlan,
)
from tidemark.data_plane.query.lowering.aggregates import aggregate_column
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, event_time, payload, quoted

WINDOW = "__tm_window"
END = "__tm_end"
WINDOW_END = "__tm_window_end"
# Spark refuses a session window without a grouping key.
_NO_KEY = "__tm_no_key"


def assign(plan: WindowPlan, frame: DataFrame) -> DataFrame:
    """One row per assignment of an event to a window, with WINDOW (start, end) and its end in microseconds."""
    assigned = frame.withColumn(WINDOW, _window_of(plan.window))
    return assigned.withColumn(END, F.unix_micros(F.col(WINDOW).getField("end")))


def _window_of(spec: TumblingWindow | SlidingWindow | SessionWindow) -> Column:
    if isinstance(spec, SlidingWindow):
        size, every = _duration(spec.size_ms), _duration(spec.every_ms)
        return F.window("_event_time", size, every, _duration(spec.offset_ms % spec.every_ms))
    end = own_end(spec, F.unix_micros("_event_time"))
    start = F.col("_event_time") if isinstance(spec, SessionWindow) else F.timestamp_micros(end - spec.size_ms * 1000)
    return F.struct(start.alias("start"), F.timestamp_micros(end).alias("end"))


def own_end(spec: TumblingWindow | SessionWindow, micros: Column) -> Column:
    """When the window of an event ends, in microseconds; for a session, the one it would have alone."""
    if isinstance(spec, SessionWindow):
        return micros + spec.gap_ms * 1000
    size, offset = F.lit(spec.size_ms * 1000), F.lit(spec.offset_ms * 1000)
    return micros - F.pmod(micros - offset, size) + size


def _duration(milliseconds: int) -> str:
    return f"{milliseconds} milliseconds"


def aggregate_window(plan: WindowPlan, assigned: DataFrame) -> DataFrame:
    """Groups assignments by key and window; which of them are late, and when a window closes, is the watermark's."""
    spec = plan.window
    if isinstance(spec, SessionWindow):
        assigned = assigned.drop(WINDOW).withColumn(_NO_KEY, F.lit(0))
        window = F.session_window("_event_time", _duration(spec.gap_ms)).alias(WINDOW)
        grouping = [*_keys(plan.key), F.col(_NO_KEY), window]
        start, end = F.col(WINDOW).getField("start"), F.col(WINDOW).getField("end")
    else:
        # The end alone tells the window, so less is shuffled and kept than with Spark's pair of start and end.
        assigned = assigned.select("*", event_time(F.col(WINDOW).getField("end"), WINDOW_END))
        grouping = [*_keys(plan.key), F.col(WINDOW_END)]
        end = F.col(WINDOW_END)
        start = F.timestamp_micros(F.unix_micros(end) - spec.size_ms * 1000)
    results = assigned.groupBy(*grouping).agg(*[aggregate_column(item) for item in plan.aggregate])
    results = results.select("*", start.alias("window_start"), end.alias("window_end"))
    return _with_system_columns(results, plan, end - F.expr("interval 1 microsecond"))


def aggregate_running(plan: AggregatePlan, frame: DataFrame) -> DataFrame:
    """One row per key that changed in the epoch."""
    keys = _keys(plan.key) or [F.lit(0).alias(_NO_KEY)]
    results = frame.groupBy(*keys).agg(
        *[aggregate_column(item) for item in plan.aggregate], F.max("_event_time").alias("__tm_latest")
    )
    return _with_system_columns(results, plan, F.col("__tm_latest"))


def _keys(key: tuple[Named, ...]) -> list[Column]:
    return [F.expr(item.expression.sql).alias(item.name) for item in key]


def _with_system_columns(results: DataFrame, plan: WindowPlan | AggregatePlan, time: Column) -> DataFrame:
    """A result is an event again: its time, an id made of key and window, and the operator as its source."""
    parts = [quoted(item.name) for item in plan.key]
    if isinstance(plan, WindowPlan):
        parts.append("window_start")
    key = F.to_json(F.array(*[F.col(quoted(item.name)).cast("string") for item in plan.key]))
    identity = F.concat_ws("/", F.lit(plan.id), F.to_json(F.struct(*parts)) if parts else F.lit("all"))
    system = {
        "_event_id": identity,
        "_event_time": time,
        "_ingestion_time": F.current_timestamp(),
        "_key": key,
        "_source": F.lit(plan.id),
        "_partition": F.lit(None).cast("int"),
        "_offset": F.lit(None).cast("bigint"),
        "_headers": F.lit(None).cast("map<string,string>"),
    }
    columns = [
        event_time(value, name) if name == "_event_time" else value.alias(name) for name, value in system.items()
    ]
    assert tuple(system) == SYSTEM_NAMES
    return results.select(*payload(plan.output), *columns)
