"""From raw records to events: payload, system columns, and whether the event is accepted.

The same code reads a stream and, when an epoch had bad records, that epoch again as a static frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.connectors.connector import Records
from tidemark.data_plane.query.lowering.columns import fenced
from tidemark.data_plane.query.lowering.decode import VALUE, Problem, decode, problem, raw_bytes
from tidemark.record_errors import RecordError
from tidemark.schema import SYSTEM_COLUMNS

ACCEPTED = "__tm_accepted"


@dataclass(frozen=True)
class Events:
    """`frame` has payload and system columns for every record, good or bad; `accepted` marks the good ones."""

    frame: DataFrame
    problems: tuple[Problem, ...]
    plan: SourcePlan

    def marked(self) -> DataFrame:
        return self.frame.select(*self._columns(), self._good().alias(ACCEPTED))

    def _good(self) -> Column:
        good = F.lit(True)
        for found in self.problems:
            good = good & ~F.coalesce(found.condition, F.lit(False))
        return good

    def errors(self) -> DataFrame:
        """The rejected records: raw bytes, the first reason that applies, and the system columns."""
        code = F.coalesce(*[F.when(found.condition, found.code) for found in self.problems])
        message = F.coalesce(*[F.when(found.condition, found.message) for found in self.problems])
        judged = fenced(self.frame.withColumn(ACCEPTED, self._good()), self.plan.id)
        return judged.where(~F.col(ACCEPTED)).select(
            raw_bytes(self.plan, self.plan.columns).alias("_raw"),
            code.alias("_error_code"),
            message.alias("_error"),
            *[name for name, _ in SYSTEM_COLUMNS],
        )

    def accepted(self) -> DataFrame:
        """The good events of a static frame; a stream counts them on the way instead."""
        return fenced(self.marked(), self.plan.id).where(ACCEPTED).drop(ACCEPTED)

    def _columns(self) -> list[str]:
        return [f"`{column.name}`" for column in self.plan.columns] + [name for name, _ in SYSTEM_COLUMNS]


def read_events(records: Records, plan: SourcePlan, ingestion_time: Column) -> Events:
    """Decodes the records of a source; `ingestion_time` is the logged time of the epoch."""
    frame = records.frame
    if records.value is not None:
        frame = frame.withColumn(VALUE, records.value)
    decoded = decode(frame, plan)
    system = _system_columns(records, plan, ingestion_time)
    frame = decoded.frame.withColumns(system)
    return Events(frame, (*decoded.problems, *_event_problems(records, plan)), plan)


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
    limit = F.unix_micros("_ingestion_time") + plan.watermark.max_future_ms * 1000
    problems.append(
        problem(
            RecordError.FUTURE_EVENT,
            F.unix_micros("_event_time") > limit,
            f"the event's time is more than {plan.watermark.max_future_ms} ms ahead of its ingestion",
        )
    )
    return problems
