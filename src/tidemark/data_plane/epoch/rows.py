"""The rows of one epoch as a sink sees them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemark.compiler.plan.plan import ExecutionPlan, SinkPlan
from tidemark.data_plane.query.frames import ORDER, applied_in_order
from tidemark.data_plane.query.lowering.columns import payload
from tidemark.data_plane.spark_internals import arrow_batches


class SinkRows:
    """Exactly the sink's columns; nothing runs until the sink asks."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    @property
    def frame(self) -> DataFrame:
        return self._frame

    def batches(self) -> Iterator[pa.RecordBatch]:
        return arrow_batches(self._frame)


def rows_for(sink: SinkPlan, frame: DataFrame, plan: ExecutionPlan) -> SinkRows:
    """Events for a keyed sink are put in order of (_event_time, _event_id), so that the last of a key wins."""
    if applied_in_order(sink, plan):
        frame = frame.repartition(1).sortWithinPartitions(*ORDER)
    return SinkRows(frame.select(*payload(sink.columns)))
