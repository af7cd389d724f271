"""The rows of a frame on disk, from where they can be read batch by batch, as often as wanted.

What PySpark has to bring rows to the driver holds all rows of a task in Java's memory, and those of other tasks until
somebody has read them: an epoch of five million results used nearly all of 1 GB. Here each task holds one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidemark.data_plane.spark_internals import has_class
from tidemark.java_classes import ROW_FILES

_BATCH_ROWS = 10_000
# Without dictionaries the size of a group of rows says how much memory it takes.
_PARQUET = {
    "compression": "none",
    "parquet.block.size": str(16 * 1024 * 1024),
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "64",
    "parquet.enable.dictionary": "false",
}


class RowFiles:
    """Runs the plan of the frame, once; `folder` is there and empty, and every task reaches it."""

    def __init__(self, frame: DataFrame, folder: Path) -> None:
        if has_class(frame.sparkSession.sparkContext, ROW_FILES):
            frame.write.format(ROW_FILES).option("folder", str(folder)).mode("append").save()
            self._files = [folder / name for name in (folder / "written").read_text().splitlines()]
            self._read = _arrow
        else:
            # Some tens of milliseconds slower for an epoch, and in need of nothing that Spark does not have.
            frame.write.options(**_PARQUET).mode("append").parquet(f"file://{folder}")
            self._files = sorted(folder.glob("part-*"))
            self._read = _parquet

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The same rows in the same order each time."""
        for file in self._files:
            yield from self._read(file)


def _arrow(file: Path) -> Iterable[pa.RecordBatch]:
    with pa.OSFile(str(file)) as opened, pa.ipc.open_stream(opened) as stream:
        yield from stream


def _parquet(file: Path) -> Iterable[pa.RecordBatch]:
    with pq.ParquetFile(file) as rows:
        for group in range(rows.num_row_groups):
            yield from rows.read_row_group(group).to_batches(max_chunksize=_BATCH_ROWS)
