"""The files sink beyond the common contract: names, folders, half-finished commits, failures of the disk."""

from __future__ import annotations

import errno
import fcntl
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from connectors.arrow_rows import columns_of, context_for
from connectors.sink_readers import data_files, read_csv, read_jsonl, read_parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark import durable
from tidemark.compiler.plan.plan import Column
from tidemark.connectors.files import commit_lock, manifest
from tidemark.connectors.files import sink as files_sink
from tidemark.connectors.files.sink import FilesSink
from tidemark.errors import DiskFull, Fenced, SinkMismatch, SinkUnavailable, StateFault
from tidemark.testing.sink_target import FrameRows, SimulatedCrash, crash_at

COLUMNS = columns_of(k="string", n="long")
LEDGER = Path("out", "_tidemark", "lineage", "out")


def sink_in(
    base: Path,
    columns: tuple[Column, ...] = COLUMNS,
    *,
    attempt: int = 1,
    failpoint: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> FilesSink:
    options = {"path": "out", "format": "jsonl", "partition_by": (), **options}
    return FilesSink(context_for(base, options, columns, attempt=attempt, failpoint=failpoint))


def opened(base: Path, columns: tuple[Column, ...] = COLUMNS, **settings: Any) -> FilesSink:
    sink = sink_in(base, columns, **settings)
    sink.open()
    return sink


def numbers(spark: SparkSession, count: int, partitions: int = 1) -> FrameRows:
    frame = spark.range(0, count, 1, partitions)
    return FrameRows(frame.select(F.concat(F.lit("k"), F.col("id") % 2).alias("k"), F.col("id").alias("n")))


def seen(base: Path) -> list[int]:
    return sorted(row["n"] for row in read_jsonl(base / "out", COLUMNS))


@pytest.mark.parametrize("format_", ["jsonl", "csv", "parquet"])
def test_names_say_who_wrote_them_and_when(format_: str, spark: SparkSession, tmp_path: Path) -> None:
    opened(tmp_path, format=format_).write(12, numbers(spark, 10, partitions=3))
    names = [path.name for path in data_files(tmp_path / "out")]
    assert names == [f"part-lineage-out-0000000012-{i:05d}.{format_}" for i in range(3)]


@pytest.mark.parametrize("format_", ["jsonl", "csv", "parquet"])
def test_a_task_without_rows_leaves_no_file(format_: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = FrameRows(numbers(spark, 10, partitions=2).frame.filter("n >= 5"))
    assert opened(tmp_path, format=format_).write(0, rows) == 5
    assert len(data_files(tmp_path / "out")) == 1


@pytest.mark.parametrize(("format_", "read"), [("jsonl", read_jsonl), ("csv", read_csv), ("parquet", read_parquet)])
def test_partition_columns_become_folders(
    format_: str, read: Callable[..., list[dict[str, Any]]], spark: SparkSession, tmp_path: Path
) -> None:
    values = [("a/b=c", 1, "x"), ("é d", 2, "y"), (None, 3, "z"), ("a/b=c", 4, None)]
    sink = opened(tmp_path, columns_of(k="string", n="long", v="string"), format=format_, partition_by=("k",))
    assert sink.write(0, FrameRows(spark.createDataFrame(values, "k string, n long, v string"))) == 4
    assert sink.write(1, FrameRows(spark.createDataFrame([("new", 5, "w")], "k string, n long, v string"))) == 1
    body = columns_of(n="long", v="string")
    rows = sorted((row["n"], row["v"]) for row in read(tmp_path / "out", body))
    assert rows == [(1, "x"), (2, "y"), (3, "z"), (4, None), (5, "w")]
    folders = {path.parent.relative_to(tmp_path / "out").as_posix() for path in data_files(tmp_path / "out")}
    assert folders == {"k=a%2Fb%3Dc", "k=é d", "k=__HIVE_DEFAULT_PARTITION__", "k=new"}


@pytest.mark.parametrize(
    "value", ["x" * 300, "\N{LATIN SMALL LETTER E WITH ACUTE}" * 130, "a\0b"], ids=["long", "bytes", "nul"]
)
def test_a_value_that_no_folder_can_have_as_its_name_is_told(value: str, spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(tmp_path, partition_by=("k",))
    rows = FrameRows(spark.createDataFrame([(value, 1), ("fine", 2)], "k string, n long"))
    with pytest.raises(SinkMismatch, match="no folder can have the name 'k=") as told:
        sink.write(0, rows)
    assert "partition_by" in (told.value.hint or "")
    assert len(told.value.message) < 150
    assert data_files(tmp_path / "out") == []


def test_a_row_whose_only_csv_column_is_null_is_a_line(spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(tmp_path, columns_of(n="long"), format="csv")
    assert sink.write(0, FrameRows(spark.createDataFrame([(None,), (2,), (None,)], "n long").coalesce(1))) == 3
    (path,) = data_files(tmp_path / "out")
    assert path.read_text().splitlines() == ["n", '""', "2", '""']


def test_parquet_timestamps_are_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    opened(tmp_path, columns_of(t="timestamp"), format="parquet").write(
        0, FrameRows(spark.range(1).select(F.timestamp_micros(F.lit(1)).alias("t")))
    )
    (path,) = data_files(tmp_path / "out")
    assert str(pq.read_schema(path).field("t").type) == "timestamp[us, tz=UTC]"
    assert pq.ParquetFile(path).schema.column(0).physical_type == "INT64"


def test_the_frame_is_executed_once(spark: SparkSession, tmp_path: Path) -> None:
    executed = spark.sparkContext.accumulator(0)

    def noted(n: int) -> int:
        executed.add(1)
        return n

    frame = numbers(spark, 50, partitions=2).frame
    frame = frame.select("k", F.udf(noted, "long", useArrow=False)("n").alias("n"))
    assert opened(tmp_path, partition_by=("k",)).write(0, FrameRows(frame)) == 50
    assert executed.value == 50


def test_epochs_of_a_stateful_stream(spark: SparkSession, tmp_path: Path) -> None:
    """The rows of a running query: the count has to come out of the same execution."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": "a", "n": 1}\n{"k": "b", "n": 2}\n{"k": "a", "n": 3}\n')
    sink, counts = opened(tmp_path), []

    def write(frame: DataFrame, epoch: int) -> None:
        counts.append(sink.write(epoch, FrameRows(frame)))

    stream = spark.readStream.name("numbers").schema("k string, n long").json(str(tmp_path / "in"))
    totals = stream.groupBy("k").agg(F.sum("n").alias("n")).writeStream.outputMode("update")
    query = totals.foreachBatch(write).trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "c"))
    query.queryName("files_sink").start().awaitTermination()
    assert counts == [2]
    assert seen(tmp_path) == [2, 4]


def test_staged_files_are_hidden_until_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    visible: dict[str, int] = {}

    def look(name: str) -> None:
        visible[name] = len(data_files(tmp_path / "out"))

    opened(tmp_path, failpoint=look).write(0, numbers(spark, 4, partitions=2))
    assert visible == {"mid_sink": 0, "before_sink_commit": 0, "after_sink_commit": 0}
    assert len(data_files(tmp_path / "out")) == 2


@pytest.mark.parametrize("renamed", [0, 1, 2, 3])
def test_a_crash_among_the_renames_is_finished_at_open(renamed: int, spark: SparkSession, tmp_path: Path) -> None:
    crash_after_renames(renamed, spark, tmp_path)
    assert len(data_files(tmp_path / "out")) == renamed
    sink = sink_in(tmp_path, attempt=2)
    assert sink.open() == 0
    assert seen(tmp_path) == list(range(9))
    assert sink.held(0) == 9
    assert not list((tmp_path / LEDGER).glob("staging/*"))


def test_a_retry_without_a_restart_finishes_the_renames(spark: SparkSession, tmp_path: Path) -> None:
    sink = crash_after_renames(1, spark, tmp_path)
    assert sink.held(0) == 9
    assert seen(tmp_path) == list(range(9))


def crash_after_renames(renamed: int, spark: SparkSession, base: Path) -> FilesSink:
    sink = opened(base, failpoint=crash_at("after_sink_commit"))
    with pytest.raises(SimulatedCrash):
        sink.write(0, numbers(spark, 9, partitions=3))
    written = json.loads((base / LEDGER / "epochs" / "0000000000.json").read_text())
    for staged, final in written["files"][:renamed]:
        (base / LEDGER / "staging" / written["staging"] / staged).replace(base / "out" / final)
    return sink


def test_a_file_that_a_reader_took_away_stays_away(spark: SparkSession, tmp_path: Path) -> None:
    opened(tmp_path).write(0, numbers(spark, 2))
    for path in data_files(tmp_path / "out"):
        path.unlink()
    assert sink_in(tmp_path, attempt=2).open() == 0
    assert data_files(tmp_path / "out") == []


def test_an_attempt_that_has_staged_its_rows_is_fenced_before_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    newer = sink_in(tmp_path, attempt=2)
    older = opened(tmp_path, failpoint=lambda name: (newer.open(), None)[1] if name == "mid_sink" else None)
    with pytest.raises(Fenced):
        older.write(0, numbers(spark, 3))
    assert data_files(tmp_path / "out") == []
    newer.write(0, numbers(spark, 3))
    assert seen(tmp_path) == [0, 1, 2]


def test_what_a_killed_attempt_staged_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(tmp_path, failpoint=crash_at("mid_sink"))
    with pytest.raises(SimulatedCrash):
        sink.write(0, numbers(spark, 3))
    assert list((tmp_path / LEDGER).glob("staging/*"))
    opened(tmp_path, attempt=2)
    assert not list((tmp_path / LEDGER).glob("staging/*"))


def test_an_old_attempt_leaves_the_staged_files_of_a_newer_one_alone(spark: SparkSession, tmp_path: Path) -> None:
    older = opened(tmp_path)
    newer = opened(tmp_path, attempt=2, failpoint=crash_at("after_sink_commit"))
    with pytest.raises(SimulatedCrash):
        newer.write(0, numbers(spark, 3))
    with pytest.raises(Fenced):
        older.write(0, numbers(spark, 3))
    assert newer.held(0) == 3
    assert seen(tmp_path) == [0, 1, 2]


def test_a_failed_try_is_replaced_by_the_next(spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(tmp_path)
    failing = numbers(spark, 3).frame.withColumn("n", F.raise_error(F.lit("broken")).cast("long"))
    with pytest.raises(PySparkException, match="broken"):
        sink.write(0, FrameRows(failing))
    staged = tmp_path / LEDGER / "staging" / "0000000000-1-1" / "_temporary" / "part-of-a-late-task"
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.write_text("half a line")
    assert sink.write(0, numbers(spark, 3)) == 3
    assert seen(tmp_path) == [0, 1, 2]
    assert not list((tmp_path / LEDGER).glob("staging/*"))


def test_a_column_may_be_named_like_a_file(spark: SparkSession, tmp_path: Path) -> None:
    columns = (Column(name="part-x", type="long"), Column(name="n", type="long"))
    rows = FrameRows(spark.range(4).selectExpr("id % 2 AS `part-x`", "id AS n"))
    opened(tmp_path, columns, partition_by=["part-x"]).write(0, rows)
    assert sorted(row["n"] for row in read_jsonl(tmp_path / "out", columns[1:])) == [0, 1, 2, 3]


def test_old_lists_are_pruned(spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(8, 13):
        sink.write(epoch, numbers(spark, 1))
    assert [path.stem for path in sorted((tmp_path / LEDGER / "epochs").iterdir())] == [
        "0000000010", "0000000011", "0000000012"
    ]  # fmt: skip
    assert sink.held(11) == 1
    assert len(data_files(tmp_path / "out")) == 5


@pytest.mark.parametrize("full", [files_sink, manifest, durable])
def test_a_full_disk_before_the_commit_shows_nothing(
    full: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sink = opened(tmp_path)
    operation = {files_sink: "sync_tree", manifest: "write_atomically", durable: "sync"}[full]
    with monkeypatch.context() as patched:
        patched.setattr(full, operation, no_space)
        with pytest.raises(DiskFull):
            sink.write(0, numbers(spark, 3))
    assert sink.held(0) is None
    assert data_files(tmp_path / "out") == []
    assert sink.write(0, numbers(spark, 3)) == 3


def test_a_disk_that_is_full_for_spark_is_a_full_disk(spark: SparkSession, tmp_path: Path) -> None:
    failing = numbers(spark, 3).frame.withColumn("n", F.raise_error(F.lit("No space left on device")).cast("long"))
    with pytest.raises(DiskFull):
        opened(tmp_path).write(0, FrameRows(failing))


@pytest.mark.parametrize(
    ("partition_by", "message"),
    [(["absent"], "'absent'"), (["m"], "'m' is nested"), (["k", "m"], "nested|no column")],
)
def test_folders_that_cannot_be_are_refused_at_open(partition_by: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SinkMismatch, match=message):
        opened(tmp_path, columns_of(k="string", m="map<string,int>"), partition_by=partition_by)
    with pytest.raises(SinkMismatch, match="no column"):
        opened(tmp_path, columns_of(k="string"), partition_by=["k"])


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_a_path_that_is_no_folder_is_a_mismatch(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SinkMismatch, match=re.escape(path)):
        opened(tmp_path, path=path)
    assert (tmp_path / "file").read_text() == "mine"


def test_an_address_is_a_path(spark: SparkSession, tmp_path: Path) -> None:
    opened(tmp_path, path=f"file://{tmp_path}/o%20u:t%25").write(0, numbers(spark, 3))
    assert len(data_files(tmp_path / "o u:t%")) == 1


def test_a_lock_that_is_never_given_back_makes_the_sink_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path)
    monkeypatch.setattr(commit_lock, "LOCK_TIMEOUT_SECONDS", 0.05)
    with (tmp_path / LEDGER / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SinkUnavailable):
            opened(tmp_path, attempt=2)
    opened(tmp_path, attempt=2)


def test_a_damaged_ledger_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / LEDGER / "attempt.json").write_text('{"attem')
    with pytest.raises(StateFault, match=r"attempt\.json"):
        opened(tmp_path, attempt=2)


@pytest.mark.parametrize("epoch", [3, 4])
def test_an_old_epoch_is_never_written_again(epoch: int, spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.write(4, numbers(spark, 1))
    with pytest.raises(StateFault):
        sink.write(epoch, numbers(spark, 1))
    assert seen(tmp_path) == [0]
