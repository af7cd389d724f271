"""What is counted where a source yields its events and where a stateful operator takes them.

A metric called `name|rest` is found under that name when the epoch is done (`Execution.observed`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.data_plane.query.lowering.columns import quoted, tally
from tidemark.schema import parse_type


def source_metrics(partitions: int) -> dict[str, Column]:
    """Counts of a source, then the largest event time of each partition in microseconds; a bad record has no time."""
    time = F.col("_event_time")
    micros = F.unix_micros(time)
    newest = {
        f"newest_{index}": F.max(micros if partitions == 1 else F.when(F.col("_partition") == index, micros))
        for index in range(partitions)
    }
    counts = {"events_in": F.count(F.lit(1)), "accepted": F.count(time), "errors": tally(time.isNull())}
    return {**counts, **newest}


def arrival_metrics(end: Column) -> dict[str, Column]:
    """Rows that reach a stateful operator, and the earliest moment at which one of them stops being accepted."""
    return {"rows_in": F.count(end), "earliest_end": F.min(end)}


def field_metrics(plan: SourcePlan) -> dict[str, Column]:
    """Makes Spark's JSON reader look at fields that nobody uses: it would pass over what is wrong with them.

    Text is never wrong, and what is converted from text is looked at anyway.
    """
    return {
        f"fields:{plan.id}|{field.name}": F.count(quoted(field.name))
        for field in plan.columns
        if parse_type(field.type).name not in ("string", "timestamp", "decimal")
    }


def read_through(frame: DataFrame) -> None:
    """Runs a plan for what it counts and the state it changes; its rows go nowhere."""
    frame.write.format("noop").mode("append").save()
