"""The rows of one epoch as a sink sees them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import ExecutionPlan, SinkPlan
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, payload
from tidemark.data_plane.query.paths import ORDER, applied_in_order
from tidemark.data_plane.spark_internals import arrow_batches

_KEPT_IN_MEMORY = 8 * 1024 * 1024


class SinkRows:
    """Nothing runs until the sink asks.

    However often a sink starts over, the epoch's plan runs once: to compute an epoch can take far longer than to write
    it, and the rows must come in the same order again. What has come is kept, on disk when it is much, and given
    again before the rest.
    """

    def __init__(self, frame: DataFrame, columns: Callable[[], list[Column]]) -> None:
        self._frame = frame
        self._columns = columns
        self._coming: Iterator[pa.RecordBatch] | None = None
        self._kept = tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY)  # noqa: SIM115  # closed by __exit__
        self._sizes: list[int] = []
        self._schema: pa.Schema | None = None

    @property
    def frame(self) -> DataFrame:
        return self._frame

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._coming is None:
            self._coming = arrow_batches(self._frame.select(*self._columns()))
        yield from self._again()
        for batch in self._coming:
            self._keep(batch)
            yield batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._coming = None
        self._kept.close()

    def _keep(self, batch: pa.RecordBatch) -> None:
        message = batch.serialize()
        self._kept.seek(0, 2)
        self._kept.write(message)
        self._sizes.append(message.size)
        self._schema = batch.schema

    def _again(self) -> Iterator[pa.RecordBatch]:
        place = 0
        for size in list(self._sizes):
            self._kept.seek(place)
            yield pa.ipc.read_record_batch(pa.py_buffer(self._kept.read(size)), self._schema)
            place += size


def rows_for(sink: SinkPlan, frame: DataFrame, plan: ExecutionPlan) -> SinkRows:
    """Events for a keyed sink are put in order of (_event_time, _event_id), so that the last of a key wins."""
    if applied_in_order(sink, plan):
        frame = frame.repartition(1).sortWithinPartitions(*ORDER)
    return SinkRows(frame, lambda: [*payload(sink.columns), *map(F.col, brought_along(sink))])


def brought_along(sink: SinkPlan) -> list[str]:
    """System columns that the sink does not write, and that its refused rows need."""
    written = {column.name for column in sink.columns}
    return [name for name in SYSTEM_NAMES if name not in written] if sink.keeps_refused else []
