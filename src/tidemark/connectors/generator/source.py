"""Generated events: numbers come from a Python data source, everything else from Spark expressions of the number.

Event n is a pure function of (seed, n), so a replay and another parallelism give the same events.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from tidemark.connectors.connector import EpochScan, PartitionOffsets, Records, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_BATCH = 65_536
# What is done with fewer events is mostly sooner done than a second task is started.
_WORTH_A_TASK = 10_000
_DEFAULT_RATE = 1000.0
# Beside the columns of the definition, which may have any name.
_NUMBER, _TIME = "__tm_number", "__tm_time"


class GeneratorSource:
    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._options = context.options

    @property
    def partitions(self) -> int:
        return int(self._options.get("partitions") or 1)

    def stream(self, spark: SparkSession) -> Records:
        spark.dataSource.register(Numbers)
        reader = self._context.reader(spark).format(Numbers.name())
        for name, value in self._pacing(spark).items():
            reader = reader.option(name, str(value))
        return self._records(reader.load())

    def reread(self, spark: SparkSession, scan: EpochScan) -> Records:
        return self._records(scan.frame())

    def unread(self, end: str | None, latest: str | None) -> int | None:
        return json.loads(latest)["n"] - json.loads(end)["n"] if end and latest else None

    def offsets(self, end: str | None, latest: str | None) -> dict[int, PartitionOffsets]:
        """Event n is at offset n of its partition."""
        if not end:
            return {}
        read, newest = json.loads(end)["n"], json.loads(latest)["n"] if latest else None
        places = {partition: self._next(read, partition) for partition in range(self.partitions)}
        if newest is None:
            return {partition: PartitionOffsets(offset) for partition, offset in places.items()}
        ends = {partition: self._next(newest, partition) for partition in range(self.partitions)}
        return {
            partition: PartitionOffsets(offset, ends[partition], (ends[partition] - offset) // self.partitions)
            for partition, offset in places.items()
        }

    def _next(self, number: int, partition: int) -> int:
        """The first number of a partition that is not below another."""
        return int(number + (partition - number) % self.partitions)

    def _pacing(self, spark: SparkSession) -> dict[str, Any]:
        return {
            "count": self._options.get("count") or 0,
            "rate": self._options.get("rate") or 0,
            "startedMs": self._context.first_started_ms,
            "maxEvents": self._context.epoch.max_events,
            "slots": spark.sparkContext.defaultParallelism,
        }

    def _records(self, numbers: DataFrame) -> Records:
        columns = [F.expr(sql).alias(name) for name, sql in self._options["columns_sql"].items()]
        frame = numbers.select(
            F.col("n").alias(_NUMBER), F.timestamp_micros(self._event_micros()).alias(_TIME), *columns
        )
        return Records(
            frame,
            F.concat_ws("/", F.lit(self._context.plan.id), _NUMBER),
            time=F.col(_TIME),
            partition=(F.col(_NUMBER) % self.partitions).cast("int"),
            offset=F.col(_NUMBER),
        )

    def _event_micros(self) -> Column:
        """`start + n / rate`, moved back by up to `max` for the share that is out of order."""
        rate = float(self._options.get("rate") or _DEFAULT_RATE)
        in_order = F.expr(f"cast(floor(cast(n as double) * {1e6 / rate!r}) as bigint)")
        if rate == int(rate):
            in_order = F.expr(f"n * 1000000 div {int(rate)}")
        moved = F.lit(self._start_micros()) + in_order
        disorder = self._options.get("out_of_order")
        if not disorder:
            return moved
        back = F.expr(f"cast(floor({self._uniform('back')} * {disorder['max'] * 1000}) as bigint)")
        return F.when(F.expr(f"{self._uniform('pick')} < {disorder['fraction']!r}"), moved - back).otherwise(moved)

    def _uniform(self, purpose: str) -> str:
        """SQL for a number in [0, 1) that depends on the seed, the purpose and n alone."""
        seed = int(self._options.get("seed") or 0)
        return f"(pmod(xxhash64({seed}L, '{purpose}', n), 1000000007L) / 1000000007D)"

    def _start_micros(self) -> int:
        start = self._options.get("start_ms")
        return int(self._context.first_started_ms if start is None else start) * 1000


class Numbers(DataSource):
    """The numbers 0, 1, 2, …: up to `count`, or as many as `rate` allows since the job first started."""

    @classmethod
    def name(cls) -> str:
        return "tidemark_numbers"

    def schema(self) -> str:
        return "n bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _NumbersReader(dict(self.options))


class _Range(InputPartition):
    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))
        self.first = first
        self.end = end


class _NumbersReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        # Spark hands options over with lower-case names.
        given = {name.lower(): value for name, value in options.items()}
        self._count = int(given["count"])
        self._rate = float(given["rate"])
        self._started_ms = int(given["startedms"])
        self._max_events = int(given["maxevents"])
        self._slots = int(given["slots"])

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        available = self._available()
        if isinstance(limit, ReadAllAvailable):
            return {"n": max(start["n"], available)}
        return {"n": max(start["n"], min(available, start["n"] + self._max_events))}

    def reportLatestOffset(self) -> dict[str, int]:
        return {"n": self._available()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, total = start["n"], end["n"] - start["n"]
        tasks = min(self._slots, 1 + total // _WORTH_A_TASK)
        edges = [first + total * task // tasks for task in range(tasks + 1)]
        return [_Range(low, high) for low, high in pairwise(edges) if high > low]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        for low in range(partition.first, partition.end, _BATCH):
            high = min(low + _BATCH, partition.end)
            yield pa.RecordBatch.from_arrays([pa.array(range(low, high), pa.int64())], ["n"])

    def _available(self) -> int:
        if self._count:
            return self._count
        return max(0, int((time.time() * 1000 - self._started_ms) * self._rate / 1000))
