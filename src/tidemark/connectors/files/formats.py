"""The file formats of the files sink: how Spark writes each, and how to tell a file that holds no row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column

from tidemark.connectors.spark_rendering import csv_columns, json_columns, parquet_columns
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
    writer: str
    suffix: str
    columns: Callable[[dict[str, Type], Sequence[str]], list[Column]]
    is_empty: Callable[[Path], bool]
    options: dict[str, str] = field(default_factory=dict)


FORMATS = {
    "jsonl": FileFormat(
        "json", ".jsonl", json_columns, _no_bytes, {"ignoreNullFields": "false", "compression": "none"}
    ),
    "csv": FileFormat(
        "csv",
        ".csv",
        csv_columns,
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
        parquet_columns,
        _no_rows,
    ),
}
