"""Dedup: the first of equal events whose event times lie less than `within` apart.

Spark's own operator also drops an equal event that is farther away while its state has not expired, so the
decision is made here: keys are spread over buckets, and a bucket keeps one array of (key hash, kept time), read
and written once an epoch. Rows travel packed as JSON, because pandas would not keep nulls and large integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, BooleanType, StructField, StructType

from tidemark.compiler.plan.plan import DedupPlan
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, event_time, quoted
from tidemark.schema import SYSTEM_COLUMNS, parse_type

HORIZON = "__tm_horizon"
# A key stays in its bucket when the parallelism changes; there are enough of them for some dozen key groups.
_BUCKETS = 32
_PACKED = "__tm_packed"
_COLUMNS = (_PACKED, "__tm_id", "__tm_micros", HORIZON, "__tm_high", "__tm_low", "__tm_bucket")
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
_KEPT = np.dtype([("high", "<i8"), ("low", "<i8"), ("time", "<i8")])


def duplicate_column(plan: DedupPlan) -> str:
    return f"__tm_duplicate_{plan.id}"


def with_horizon(plan: DedupPlan, frame: DataFrame) -> DataFrame:
    """Adds when the event stops mattering: it is late for this operator once the watermark has reached that."""
    return frame.withColumn(HORIZON, F.unix_micros("_event_time") + plan.within_ms * 1000)


def mark_duplicates(plan: DedupPlan, frame: DataFrame) -> DataFrame:
    """All events that are not late, each marked as duplicate or not. `frame` has its horizon."""
    packed = frame.select(*_packed_columns(plan, frame))
    marked = StructType([*packed.schema.fields, StructField(duplicate_column(plan), BooleanType())])
    return packed.groupBy("__tm_bucket").transformWithStateInPandas(
        statefulProcessor=KeepFirst(plan.within_ms * 1000, duplicate_column(plan)),
        outputStructType=marked,
        outputMode="append",
        timeMode="eventtime",
        eventTimeColumnName=HORIZON,
    )


def unpack(plan: DedupPlan, marked: DataFrame) -> DataFrame:
    """The events behind `mark_duplicates`, with the mark still on them."""
    fields = [(column.name, parse_type(column.type).ddl) for column in plan.output]
    fields += [(name, "bigint" if type_.name == "timestamp" else type_.ddl) for name, type_ in SYSTEM_COLUMNS]
    schema = ", ".join(f"{quoted(name)} {ddl}" for name, ddl in fields)
    opened = marked.select(F.from_json(_PACKED, schema, _JSON).alias("event"), duplicate_column(plan))
    flat = opened.select("event.*", duplicate_column(plan))
    columns = [F.col(quoted(column.name)) for column in plan.output]
    columns += [_restored(name) for name in SYSTEM_NAMES]
    return flat.select(*columns, duplicate_column(plan))


def _packed_columns(plan: DedupPlan, frame: DataFrame) -> list[Any]:
    body = [F.col(quoted(column.name)) for column in plan.output]
    body += [F.unix_micros(name).alias(name) if name.endswith("_time") else F.col(name) for name in SYSTEM_NAMES]
    by = [part for name in plan.by for part in (F.col(quoted(name)), F.isnull(F.col(quoted(name))))]
    return [
        F.to_json(F.struct(*body), _JSON).alias(_PACKED),
        F.col("_event_id").alias("__tm_id"),
        F.unix_micros("_event_time").alias("__tm_micros"),
        event_time(F.timestamp_micros(HORIZON), HORIZON),
        F.xxhash64(F.lit(0), *by).alias("__tm_high"),
        F.xxhash64(F.lit(1), *by).alias("__tm_low"),
        F.pmod(F.hash(*by), F.lit(_BUCKETS)).alias("__tm_bucket"),
    ]


def _restored(name: str) -> Any:
    if name == "_event_time":
        return event_time(F.timestamp_micros(name), name)
    return F.timestamp_micros(name).alias(name) if name == "_ingestion_time" else F.col(name)


class KeepFirst(StatefulProcessor):
    """Per bucket: of equal keys less than `within` microseconds apart, the first by (time, id) of the first epoch."""

    def __init__(self, within: int, mark: str) -> None:
        self._within = within
        self._mark = mark

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getValueState("kept", StructType([StructField("times", BinaryType())]))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        events = pd.concat(list(rows), ignore_index=True)
        events.columns = pd.Index(_COLUMNS)
        events = events.sort_values(["__tm_micros", "__tm_id"], kind="stable", ignore_index=True)
        kept = self._load(timerValues.getCurrentWatermarkInMs() * 1000)
        arrived = np.empty(len(events), _KEPT)
        for field, column in (("high", "__tm_high"), ("low", "__tm_low"), ("time", "__tm_micros")):
            arrived[field] = events[column].to_numpy()
        duplicate = self._duplicates(kept, arrived)
        self._kept.update((np.concatenate([kept, arrived[~duplicate]]).tobytes(),))
        events[self._mark] = duplicate
        yield events

    def close(self) -> None: ...

    def _load(self, watermark: int) -> Any:
        """What still matters: a kept time goes once the watermark has reached its horizon."""
        state = self._kept.get()
        if state is None:
            return np.empty(0, _KEPT)
        kept = np.frombuffer(state[0], _KEPT)
        return kept[kept["time"] + self._within > watermark]

    def _duplicates(self, kept: Any, arrived: Any) -> Any:
        touched = kept[np.isin(kept["high"], arrived["high"])]
        times: dict[tuple[int, int], list[int]] = {}
        for high, low, time in touched.tolist():
            times.setdefault((high, low), []).append(time)
        duplicate = np.zeros(len(arrived), bool)
        for index, (high, low, time) in enumerate(arrived.tolist()):
            known = times.setdefault((high, low), [])
            duplicate[index] = any(abs(time - earlier) < self._within for earlier in known)
            if not duplicate[index]:
                known.append(time)
        return duplicate
