"""Rows on disk on their way to a sink: all of them, once, in order, as they were, whichever way they are written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.data_plane import row_files
from tidemark.data_plane.row_files import RowFiles
from tidemark.data_plane.spark_internals import has_class
from tidemark.java_classes import ROW_FILES

EVERY_TYPE = (
    "s string, i int, l long, f float, d double, b boolean, day date, bin binary, dec decimal(28,8), t timestamp,"
    " a array<string>, m map<string,long>, st struct<x:int,y:array<timestamp>>"
)
VALUES: list[tuple[Any, ...]] = [
    (
        "ä€😀",
        -1,
        2**62,
        1.5,
        -0.0,
        True,
        date(1, 1, 1),
        b"\x00\xff",
        Decimal("12345678901234567890.12345678"),
        datetime(2026, 1, 1, 0, 0, 0, 1, UTC),
        ["a", None],
        {"k": 1, "": None},
        (1, [datetime(1500, 1, 1, tzinfo=UTC)]),
    ),
    (
        "",
        0,
        0,
        0.0,
        0.0,
        False,
        date(9999, 12, 31),
        b"",
        Decimal(0),
        datetime(9999, 12, 31, tzinfo=UTC),
        [],
        {},
        (2, []),
    ),
    (None,) * 13,
]


@pytest.fixture(params=["arrow", "parquet"])
def way(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """By Tidemark's own class, and as it is without it."""
    assert has_class(spark.sparkContext, ROW_FILES), "`make setup` compiles it"
    if request.param == "parquet":
        monkeypatch.setattr(row_files, "has_class", lambda context, name: False)
    return str(request.param)


def written(frame: DataFrame, folder: Path) -> list[pa.RecordBatch]:
    folder.mkdir()
    return list(RowFiles(frame, folder).batches())


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_every_row_comes_once_in_order_and_in_batches(way: str, spark: SparkSession, tmp_path: Path) -> None:
    batches = written(spark.range(0, 45_000, 1, 4), tmp_path / "rows")
    assert numbers(batches) == list(range(45_000))
    assert max(batch.num_rows for batch in batches) <= 10_000


def test_every_type_is_what_it_was(way: str, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(VALUES, EVERY_TYPE).coalesce(1)
    (batch,) = written(frame, tmp_path / "rows")
    expected = frame.toArrow()
    assert batch.schema.names == expected.schema.names
    assert [field.type for field in batch.schema if not pa.types.is_nested(field.type)] == [
        field.type for field in expected.schema if not pa.types.is_nested(field.type)
    ]
    assert batch.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(("rows", "width"), [(4_000, 20_000), (40, 2_000_000)])
def test_wide_rows_come_in_smaller_batches(
    way: str, spark: SparkSession, tmp_path: Path, rows: int, width: int
) -> None:
    """Memory is bounded by bytes, not only by rows, and also where rows become wide all of a sudden.

    Parquet looks at the size of a hundred rows first.
    """
    text = F.repeat(F.lit("x"), F.when(F.col("id") < rows // 4, 1).otherwise(width))
    batches = written(spark.range(0, rows, 1, 1).select("id", text.alias("text")), tmp_path / "rows")
    assert numbers(batches) == list(range(rows))
    if way == "arrow" or rows > 100:
        assert max(batch.nbytes for batch in batches) < 32 * 1024 * 1024


def test_no_rows_are_no_batches_or_empty_ones(way: str, spark: SparkSession, tmp_path: Path) -> None:
    assert numbers(written(spark.range(0), tmp_path / "none")) == []
    assert numbers(written(spark.range(0, 5, 1, 5).where("id = 3"), tmp_path / "one")) == [3]


def test_what_goes_wrong_in_the_plan_is_told(way: str, spark: SparkSession, tmp_path: Path) -> None:
    failing = spark.range(0, 10, 1, 2).select(F.when(F.col("id") == 7, F.raise_error(F.lit("poisoned"))).alias("x"))
    with pytest.raises(PySparkException, match="poisoned"):
        written(failing, tmp_path / "rows")


def test_a_task_that_failed_and_ran_again_gives_its_rows_once(way: str, spark: SparkSession, tmp_path: Path) -> None:
    failed_once = tmp_path / "failed"

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if 25_000 in batch.column(0).to_pylist() and not failed_once.exists():
                failed_once.touch()
                raise ValueError("this time only")

    frame = spark.range(0, 50_000, 1, 2).mapInArrow(fail_once, "id long")
    assert numbers(written(frame, tmp_path / "rows")) == list(range(50_000))
    assert failed_once.exists()


def test_a_reader_may_leave_in_the_middle_and_begin_again(way: str, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    rows = RowFiles(spark.range(0, 50_000, 1, 2), tmp_path / "rows")
    assert next(rows.batches()).num_rows
    assert numbers(list(rows.batches())) == list(range(50_000))
