"""The rows of one epoch as a sink sees them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import ExecutionPlan, SinkPlan
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, payload
from tidemark.data_plane.query.paths import ORDER, applied_in_order
from tidemark.data_plane.row_files import RowFiles


class SinkRows:
    """Nothing runs until the sink asks.

    However often a sink starts over, the epoch's plan runs once: to compute an epoch can take far longer than to write
    it, and the rows must come in the same order again.
    """

    def __init__(self, frame: DataFrame, columns: Callable[[], list[Column]]) -> None:
        self._frame = frame
        self._columns = columns
        self._folder: Path | None = None
        self._written: RowFiles | None = None

    @property
    def frame(self) -> DataFrame:
        return self._frame

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._written is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rows-"))
            self._written = RowFiles(self._frame.select(*self._columns()), self._folder)
        yield from self._written.batches()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # What cannot be removed, because a task that nobody waits for is still writing, goes with the next start.
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def rows_for(sink: SinkPlan, frame: DataFrame, plan: ExecutionPlan) -> SinkRows:
    """Events for a keyed sink are put in order of (_event_time, _event_id), so that the last of a key wins."""
    if applied_in_order(sink, plan):
        frame = frame.repartition(1).sortWithinPartitions(*ORDER)
    return SinkRows(frame, lambda: [*payload(sink.columns), *map(F.col, brought_along(sink))])


def brought_along(sink: SinkPlan) -> list[str]:
    """System columns that the sink does not write, and that its refused rows need."""
    written = {column.name for column in sink.columns}
    return [name for name in SYSTEM_NAMES if name not in written] if sink.keeps_refused else []
