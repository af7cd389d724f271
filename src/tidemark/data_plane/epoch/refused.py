"""Rows that a sink's target refused, as a frame for the sinks of its port `errors`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tidemark.compiler.plan.plan import SinkPlan
from tidemark.connectors.connector import RefusingSink
from tidemark.data_plane.query.lowering.columns import quoted
from tidemark.schema import STRING, SYSTEM_COLUMNS, parse_type

_REASON = (("_error_code", STRING), ("_error", STRING))


class RefusedRows:
    """Kept beside the state, where every executor can read, until the sinks have them; in bounded memory."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def frame(self, plan: SinkPlan, sink: RefusingSink, epoch: int) -> DataFrame:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{plan.id}.parquet"
        _write(path, sink.refused_rows(epoch))
        columns = {column.name: parse_type(column.type) for column in plan.columns}
        types = {**columns, **dict(SYSTEM_COLUMNS), **dict(_REASON)}
        ddl = ", ".join(f"{quoted(name)} {type_.ddl}" for name, type_ in types.items())
        return self._spark.read.schema(ddl).parquet(str(path))

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _write(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch.cast(first.schema))
