"""From raw records to events: payload, system columns, and whether the event is accepted.

The same code reads a stream and, when an epoch had bad records, that epoch again as a static frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.connectors.connector import FlatJson, Records
from tidemark.data_plane.query.lowering.columns import fenced
from tidemark.data_plane.query.lowering.decode import (
    VALUE,
    Decoded,
    Problem,
    decode,
    decode_flat_json,
    problem,
    raw_bytes,
)
from tidemark.record_errors import RecordError
from tidemark.schema import SYSTEM_COLUMNS

_GOOD = "__tm_good"


@dataclass(frozen=True)
class Events:
    """`frame` has payload and system columns for every record, good or bad; `problems` tell the bad ones.

    `in_time` is true for an event that is not too far ahead of its ingestion.
    """

    frame: DataFrame
    problems: tuple[Problem, ...]
    in_time: Column
    plan: SourcePlan

    def timed(self) -> DataFrame:
        """Every record; a bad one has no `_event_time`, unless it is bad only for being too far ahead.

        Spark would work out a time once more for each condition that looks at it, so none here does.
        """
        judged = [
            found for found in self.problems if not found.leaves_null or found.leaves_null != self.plan.event_time
        ]
        time = F.when(_none_of(judged), F.col("_event_time")).alias("_event_time")
        return self.frame.select(*[time if name == "_event_time" else name for name in self._columns()])

    def accepted(self) -> DataFrame:
        """The good events of a static frame; a stream counts them on the way instead."""
        return fenced(self.timed(), self.plan.id).where(self.in_time)

    def recounted(self, metrics: Iterable[Column]) -> Row:
        """The counts of a stream over a static frame, with events that are too far ahead taken for bad ones."""
        time = F.when(self.in_time, F.col("_event_time")).alias("_event_time")
        judged = fenced(self.timed(), self.plan.id).withColumn("_event_time", time)
        counted = judged.agg(*metrics).first()
        assert counted is not None
        return counted

    def errors(self) -> DataFrame:
        """The rejected records: raw bytes, the first reason that applies, and the system columns."""
        problems = (*self.problems, _too_far_ahead(self.plan, self.in_time))
        code = F.coalesce(*[F.when(found.condition, found.code) for found in problems])
        message = F.coalesce(*[F.when(found.condition, found.message) for found in problems])
        judged = fenced(self.frame.withColumn(_GOOD, _none_of(problems)), self.plan.id)
        return judged.where(~F.col(_GOOD)).select(
            raw_bytes(self.plan, self.plan.columns).alias("_raw"),
            code.alias("_error_code"),
            message.alias("_error"),
            *[name for name, _ in SYSTEM_COLUMNS],
        )

    def _columns(self) -> list[str]:
        return [f"`{column.name}`" for column in self.plan.columns] + [name for name, _ in SYSTEM_COLUMNS]


def _none_of(problems: Iterable[Problem]) -> Column:
    good = F.lit(True)
    for found in problems:
        good = good & ~F.coalesce(found.condition, F.lit(False))
    return good


def read_events(records: Records, plan: SourcePlan, ingestion_time: Column) -> Events:
    """Decodes the records of a source; `ingestion_time` is the logged time of the epoch."""
    frame = records.frame
    if records.value is not None:
        frame = frame.withColumn(VALUE, records.value)
    return _events(decode(frame, plan), records, plan, ingestion_time)


def read_flat_events(records: Records, flat: FlatJson, plan: SourcePlan, ingestion_time: Column) -> Events:
    """The same events by Spark's JSON reader. Nobody may ask for an id that is made of the line."""
    without_id = replace(records, id=F.lit(None).cast("string"))
    return _events(decode_flat_json(flat, plan), without_id, plan, ingestion_time)


def _events(decoded: Decoded, records: Records, plan: SourcePlan, ingestion_time: Column) -> Events:
    frame = decoded.frame.withColumns(_system_columns(records, plan, ingestion_time))
    problems = (*decoded.problems, *_event_problems(records, plan))
    return Events(frame, problems, _in_time(plan, ingestion_time), plan)


def _in_time(plan: SourcePlan, ingestion_time: Column) -> Column:
    return F.unix_micros("_event_time") <= F.unix_micros(ingestion_time) + plan.watermark.max_future_ms * 1000


def _system_columns(records: Records, plan: SourcePlan, ingestion_time: Column) -> dict[str, Column]:
    def own(name: str | None, otherwise: Column | None, type_: str) -> Column:
        if name is not None:
            return F.col(f"`{name}`").cast(type_)
        return F.lit(None).cast(type_) if otherwise is None else otherwise.cast(type_)

    named_time = None if plan.event_time == "_ingestion_time" else plan.event_time
    brought_time = ingestion_time if plan.event_time == "_ingestion_time" or records.time is None else records.time
    partition = F.lit(0) if records.partition is None else records.partition
    return {
        "_event_id": F.coalesce(own(plan.event_id, None, "string"), records.id),
        "_event_time": own(named_time, brought_time, "timestamp"),
        "_ingestion_time": ingestion_time.cast("timestamp"),
        "_key": own(plan.key, records.key, "string"),
        "_source": F.lit(plan.id),
        "_partition": own(records.partition_column, partition, "int"),
        "_offset": own(None, records.offset, "bigint"),
        "_headers": own(None, records.headers, "map<string,string>"),
    }


def _event_problems(records: Records, plan: SourcePlan) -> list[Problem]:
    problems = [
        problem(
            RecordError.MISSING_EVENT_TIME,
            F.col("_event_time").isNull(),
            f"the event has no time: `{plan.event_time}` is missing or null",
            leaves_null=plan.event_time,
        )
    ]
    if plan.key is not None:
        problems.append(problem(RecordError.MISSING_KEY, F.col("_key").isNull(), f"`{plan.key}` is missing or null"))
    if records.partition_column is not None:
        inside = F.col(f"`{records.partition_column}`").between(0, records.partitions - 1)
        problems.append(
            problem(
                RecordError.BAD_PARTITION,
                ~F.coalesce(inside, F.lit(False)),
                f"`{records.partition_column}` must be 0 to {records.partitions - 1}",
            )
        )
    return problems


def _too_far_ahead(plan: SourcePlan, in_time: Column) -> Problem:
    return problem(
        RecordError.FUTURE_EVENT,
        ~in_time,
        f"the event's time is more than {plan.watermark.max_future_ms} ms ahead of its ingestion",
    )
