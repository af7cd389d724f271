"""The file formats of the files sink: how Spark writes each, and how to tell a file that holds no row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidemark.connectors.spark_rendering import csv_frame, json_frame, parquet_frame
from tidemark.schema import Type


def _no_bytes(path: Path) -> bool:
    return path.stat().st_size == 0


def _header_only(path: Path) -> bool:
    with path.open("rb") as file:
        file.readline()
        return file.tell() == path.stat().st_size


def _no_rows(path: Path) -> bool:
    rows: int = pq.read_metadata(path).num_rows
    return rows == 0


@dataclass(frozen=True)
class FileFormat:
    """`settings` are of the Spark session, for what the writer's own options do not cover."""

    writer: str
    suffix: str
    rendered: Callable[[DataFrame, dict[str, Type], Sequence[str]], DataFrame]
    is_empty: Callable[[Path], bool]
    options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


FORMATS = {
    "jsonl": FileFormat("json", ".jsonl", json_frame, _no_bytes, {"ignoreNullFields": "false", "compression": "none"}),
    "csv": FileFormat(
        "csv",
        ".csv",
        csv_frame,
        _header_only,
        {
            "header": "true",
            "escape": '"',
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
            "compression": "none",
        },
    ),
    "parquet": FileFormat(
        "parquet",
        ".parquet",
        parquet_frame,
        _no_rows,
        settings={"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
    ),
}
