"""Each thing we rely on that Spark does not promise, so that an upgrade that breaks one of them fails by its name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from contracts.streaming import NEVER, Epochs, Feed
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidemark.connectors.generator.source import Numbers
from tidemark.data_plane.query.lowering.columns import event_time
from tidemark.data_plane.session import SETTINGS, settings_of
from tidemark.data_plane.spark_internals import (
    Execution,
    jvm_is_alive,
    listening,
    scan_frame,
    scanned_files,
)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "in")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def count_by(frame: DataFrame, window: Column) -> DataFrame:
    """(window start, window end, count) in seconds."""
    counted = frame.groupBy(window.alias("w"), "k").count()
    return counted.select(F.unix_seconds("w.start"), F.unix_seconds("w.end"), "count")


def per_minute(frame: DataFrame) -> DataFrame:
    return count_by(frame, F.window("time", "60 seconds"))


# --- our watermark in Spark's operators ---------------------------------------------------------------------------


def window_of(kind: str) -> Column:
    if kind == "session":
        return F.session_window("time", "10 seconds")
    return F.window("time", "60 seconds", "30 seconds" if kind == "sliding" else None)


@pytest.mark.parametrize(
    ("kind", "closed_by_60", "left"),
    [
        ("tumbling", [(0, 60, 2)], [(60, 120, 1)]),
        ("sliding", [(-30, 30, 1), (0, 60, 2)], [(30, 90, 2), (60, 120, 1)]),
        ("session", [(0, 10, 1), (40, 50, 1)], [(70, 80, 1)]),
    ],
)
def test_a_watermark_handed_over_closes_windows(
    feed: Feed, checkpoint: Path, kind: str, closed_by_60: list[Any], left: list[Any]
) -> None:
    feed.add(("a", 0), ("a", 40), ("a", 70))
    with Epochs(count_by(feed.stream(), window_of(kind)), checkpoint, hand_over={0: 60, 1: 1000}) as epochs:
        epochs.run()
    assert epochs.rows[0] == []
    assert sorted(epochs.rows[1]) == closed_by_60
    assert sorted(epochs.rows[2]) == left
    assert [epochs.logged_watermark(epoch) for epoch in range(3)] == [0, 60, 1000]


def test_sparks_own_estimate_never_moves(feed: Feed, checkpoint: Path) -> None:
    """Also with a filter that Spark pushes below the watermark."""
    for time in (0, 100_000, 1_000_000_000):
        feed.add(("a", time), ("b", time))
    with Epochs(per_minute(feed.stream().where("k = 'a'")), checkpoint) as epochs:
        epochs.run()
    assert [facts.watermark_ms for facts in epochs.facts.values()] == [0, 0, 0]
    assert epochs.all_rows() == []


def test_an_event_without_a_time_may_pass_the_watermark(feed: Feed, checkpoint: Path) -> None:
    for time in (0, 1, 100_000):
        feed.add(("a", time))
    at = F.when(F.col("t") != 1, F.timestamp_seconds("t")).alias("time")
    timed = feed.raw().select("k", at).withWatermark("time", NEVER).where("time is not null")
    with Epochs(per_minute(timed), checkpoint, hand_over={0: 30, 2: 60}) as epochs:
        epochs.run()
    assert [epochs.facts[epoch].watermark_ms for epoch in range(4)] == [0, 30_000, 30_000, 60_000]
    assert epochs.all_rows() == [(0, 60, 1)]


def test_the_watermark_is_restored_at_a_restart(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 10))
    with Epochs(per_minute(feed.stream()), checkpoint, hand_over={0: 30}) as epochs:
        epochs.run()
    feed.add(("a", 20))
    with Epochs(per_minute(feed.stream()), checkpoint, hand_over={2: 60}) as restarted:
        restarted.run()
    seen = {**epochs.facts, **restarted.facts}
    assert max(facts.watermark_ms for facts in restarted.facts.values()) == 60_000
    assert min(facts.watermark_ms for epoch, facts in seen.items() if epoch) == 30_000
    assert epochs.all_rows() + restarted.all_rows() == [(0, 60, 2)]


def test_a_column_tagged_anew_is_the_event_time(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0), ("a", 70))
    moved = F.timestamp_seconds(F.col("t") + 60)
    tagged = feed.stream().select("k", event_time(moved, "time"))
    with Epochs(per_minute(tagged), checkpoint, hand_over={0: 120}) as epochs:
        epochs.run()
    assert epochs.all_rows() == [(60, 120, 1)]


def test_the_watermarks_in_force_judge_as_we_say(feed: Feed, checkpoint: Path) -> None:
    """Rows are late by the previous epoch's watermark; windows close by the epoch's own."""
    feed.add(("a", 10))
    feed.add(("a", 20))
    feed.add(("a", 30))
    with Epochs(per_minute(feed.stream()), checkpoint, hand_over={0: 60}) as epochs:
        epochs.run()
    judged = [(epochs.facts[epoch].previous_watermark_ms, epochs.facts[epoch].watermark_ms) for epoch in range(3)]
    assert judged == [(0, 0), (0, 60_000), (60_000, 60_000)]
    assert epochs.rows == {0: [], 1: [(0, 60, 2)], 2: []}


def test_a_tick_between_epochs_closes_windows(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0), ("a", 70))
    with Epochs(per_minute(feed.stream()), checkpoint) as epochs:
        epochs.run()
        for second in range(1, 60):
            epochs.execution.tick_watermark(second * 1000)
        epochs.run()
        assert epochs.all_rows() == []
        epochs.execution.tick_watermark(60_000)
        epochs.run()
        assert epochs.all_rows() == [(0, 60, 1)]
        epochs.execution.tick_watermark(253_402_300_799_000)
        epochs.run()
    assert epochs.all_rows() == [(0, 60, 1), (60, 120, 1)]


def test_a_tick_may_come_while_an_epoch_is_planned(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0), ("a", 70))
    ticks = count(1)
    with Epochs(per_minute(feed.stream()), checkpoint) as epochs:
        epochs.run()
        # Spark notices some of the ticks, and runs an epoch for each of those.
        while epochs.query.isActive and len(epochs.rows) < 25:
            epochs.execution.tick_watermark(next(ticks))
        epochs.execution.tick_watermark(60_000)
        epochs.run()
    assert epochs.all_rows() == [(0, 60, 1)]


def test_while_the_progress_lock_is_held_no_epoch_is_planned(feed: Feed, checkpoint: Path) -> None:
    with Epochs(feed.stream(), checkpoint) as epochs:
        feed.add(("a", 0))
        epochs.run()
        with epochs.execution.between_epochs():
            feed.add(("b", 1))
            epochs.query.awaitTermination(1)
            logged = sorted(path.name for path in (checkpoint / "offsets").glob("[0-9]*"))
        epochs.run()
    assert logged == ["0"]
    assert [row[0] for row in epochs.all_rows()] == ["a", "b"]


# --- what is known of an epoch ------------------------------------------------------------------------------------


class Noted:
    """Signals as they come, each kind also as an event to wait for."""

    def __init__(self) -> None:
        self.committed: list[StreamingQueryProgress] = []
        self.idle: set[str] = set()
        self.has_committed, self.was_idle, self.has_ended = threading.Event(), threading.Event(), threading.Event()

    def on_committed(self, done: StreamingQueryProgress) -> None:
        self.committed.append(done)
        self.has_committed.set()

    def on_idle(self, query_id: str) -> None:
        self.idle.add(query_id)
        self.was_idle.set()

    def on_terminated(self) -> None:
        self.has_ended.set()


def test_signals_tell_of_commits_of_quiet_and_of_the_end(spark: SparkSession, feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0), ("a", 70))
    noted, unheard = Noted(), Noted()
    with listening(spark, unheard):
        pass
    with listening(spark, noted):
        with Epochs(per_minute(feed.stream()), checkpoint) as epochs:
            epochs.run()
            assert noted.has_committed.wait(30)
            assert noted.was_idle.wait(30)
            query_id = str(epochs.query.id)
        assert noted.has_ended.wait(30)
    first = noted.committed[0]
    assert (str(first.id), first.batchId, first.numInputRows) == (query_id, 0, 2)
    assert first.stateOperators[0].numRowsTotal == 2
    assert first.durationMs["triggerExecution"] > 0
    assert json.loads(first.sources[0].endOffset) == {"logOffset": 0}
    assert noted.idle == {query_id}
    assert not unheard.has_ended.is_set()


def test_observed_values_come_with_the_one_pass_of_the_epoch(feed: Feed, checkpoint: Path) -> None:
    passes = feed.spark.sparkContext.accumulator(0)

    def note(key: str) -> str:
        passes.add(1)
        return key

    # Spark would take the type hints of `note` for those of a function of whole columns.
    noted = F.udf(lambda key: note(key), "string").asNondeterministic()("k")
    frame = feed.stream().withColumn("k", noted).observe("first", F.count(F.lit(1)), F.max("t"))
    frame = frame.where("k = 'a'").observe("second", F.count(F.lit(1)), F.max(F.when(F.lit(False), F.col("t"))))
    feed.add(("a", 3), ("b", 5))
    feed.add(("a", 1))
    with Epochs(frame, checkpoint) as epochs:
        epochs.run()
    assert epochs.observed == {0: {"first": [2, 5], "second": [1, None]}, 1: {"first": [1, 1], "second": [1, None]}}
    assert passes.value == 3


def test_the_current_time_is_the_logged_time_of_the_epoch_also_on_a_replay(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0))
    frame = feed.stream().select(F.unix_millis(F.current_timestamp()))
    with Epochs(frame, checkpoint) as epochs:
        epochs.run()
    (checkpoint / "commits" / "0").unlink()
    with Epochs(frame, checkpoint) as replayed:
        replayed.run()
    assert epochs.rows[0] == [(epochs.facts[0].started_ms,)]
    assert replayed.rows[0] == epochs.rows[0]
    assert replayed.facts[0] == epochs.facts[0]


def test_bounded_sources_give_what_was_there_and_no_more(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0))
    feed.add(("b", 1))

    def watch(_: DataFrame, epoch: int, execution: Execution) -> None:
        if epoch == 0:
            execution.bound_sources()
            feed.add(("later", 2))

    with Epochs(feed.stream().select("k"), checkpoint, watch=watch) as epochs:
        epochs.run()
    assert epochs.rows == {0: [("a",)], 1: [("b",)]}
    with Epochs(feed.stream().select("k"), checkpoint) as unbounded:
        unbounded.run()
    assert unbounded.rows == {2: [("later",)]}


# --- reading an epoch again ---------------------------------------------------------------------------------------


def test_the_files_of_an_epoch_are_known(feed: Feed, checkpoint: Path) -> None:
    paths = [feed.add(("a", 0)), feed.add(("b", 1), ("c", 2))]
    found: dict[int, list[str]] = {}

    def watch(_: DataFrame, epoch: int, execution: Execution) -> None:
        found[epoch] = scanned_files(execution.epoch_leaf("here"))

    with Epochs(feed.stream().observe("here", F.count(F.lit(1))).where("t > 1"), checkpoint, watch=watch) as epochs:
        epochs.run()
    assert {epoch: [name.removeprefix("file://") for name in names] for epoch, names in found.items()} == {
        epoch: [str(path)] for epoch, path in enumerate(paths)
    }


def test_the_files_of_a_columnar_epoch_are_known(spark: SparkSession, tmp_path: Path, checkpoint: Path) -> None:
    for part in range(2):
        rows = spark.range(part * 10, part * 10 + 3).coalesce(1)
        rows.write.mode("append").parquet(str(tmp_path / "in"))
    again: dict[int, list[int]] = {}

    def watch(_: DataFrame, epoch: int, execution: Execution) -> None:
        files = scanned_files(execution.epoch_leaf("here"))
        again[epoch] = sorted(row["id"] for row in spark.read.parquet(*files).collect())

    stream = spark.readStream.name("numbers").schema("id long").option("maxFilesPerTrigger", 1)
    frame = stream.parquet(str(tmp_path / "in")).observe("here", F.count(F.lit(1))).where("id % 2 = 0")
    with Epochs(frame, checkpoint, watch=watch) as epochs:
        epochs.run()
    assert sorted(again.values()) == [[0, 1, 2], [10, 11, 12]]


def test_the_leaf_of_a_python_source_yields_the_epoch_again(spark: SparkSession, checkpoint: Path) -> None:
    spark.dataSource.register(Numbers)
    again: dict[int, list[int]] = {}

    def watch(_: DataFrame, epoch: int, execution: Execution) -> None:
        again[epoch] = sorted(row["n"] for row in scan_frame(spark, execution.epoch_leaf("here")).collect())

    frame = numbers(spark, "numbers").observe("here", F.count(F.lit(1))).where("n > 3")
    with Epochs(frame, checkpoint, watch=watch) as epochs:
        epochs.run()
    assert again == {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}
    assert epochs.all_rows() == [(4,), (5,), (6,), (7,)]


def numbers(spark: SparkSession, name: str) -> DataFrame:
    """0 to 7, four an epoch."""
    options = {"count": 8, "rate": 0, "startedMs": 0, "maxEvents": 4, "slots": 2}
    return spark.readStream.name(name).format(Numbers.name()).options(**options).load()


def test_of_two_sources_the_named_one_is_found(spark: SparkSession, feed: Feed, checkpoint: Path) -> None:
    spark.dataSource.register(Numbers)
    feed.add(("a", 100))
    again: dict[str, list[int]] = {}

    def watch(_: DataFrame, epoch: int, execution: Execution) -> None:
        if epoch == 0:
            left = scan_frame(spark, execution.epoch_leaf("left"))
            again["right"] = [row[0] for row in scan_frame(spark, execution.epoch_leaf("right")).select("t").collect()]
            again["left"] = sorted(row[0] for row in left.collect())

    left = numbers(spark, "numbers").observe("left", F.count(F.lit(1))).select(F.col("n").alias("t"))
    right = feed.stream().observe("right", F.count(F.lit(1))).select("t")
    with Epochs(left.union(right), checkpoint, watch=watch) as epochs:
        epochs.run()
    assert again == {"left": [0, 1, 2, 3], "right": [100]}


def running_count(frame: DataFrame) -> DataFrame:
    """A Python-stateful operator: how many rows of its key came up to and including this epoch."""

    class Count(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._seen = handle.getValueState("seen", "n long")

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
            before = self._seen.get()
            seen = (before[0] if before else 0) + sum(len(part) for part in rows)
            self._seen.update((seen,))
            yield pd.DataFrame({"key": [key[0]], "seen": [seen]})

        def close(self) -> None: ...

    return frame.groupBy("k").transformWithStateInPandas(
        statefulProcessor=Count(), outputStructType="key string, seen long", outputMode="append", timeMode="none"
    )


def test_a_stateful_node_run_again_gives_the_same_and_leaves_the_state_right(feed: Feed, checkpoint: Path) -> None:
    again: dict[int, list[tuple[Any, ...]]] = {}

    def watch(_: DataFrame, epoch: int, execution: Execution) -> None:
        again[epoch] = [tuple(row) for row in execution.stateful_output(feed.spark, "seen").collect()]

    feed.add(("a", 0), ("a", 1), ("b", 2))
    feed.add(("a", 3))
    with Epochs(running_count(feed.stream()), checkpoint, watch=watch) as epochs:
        epochs.run()
    feed.add(("a", 4), ("b", 5))
    with Epochs(running_count(feed.stream()), checkpoint, watch=watch) as restarted:
        restarted.run()
    rows = {**epochs.rows, **restarted.rows}
    assert {epoch: sorted(found) for epoch, found in again.items()} == {
        epoch: sorted(found) for epoch, found in rows.items()
    }
    assert sorted(rows[0]) == [("a", 2), ("b", 1)]
    assert rows[1] == [("a", 3)]
    assert sorted(rows[2]) == [("a", 4), ("b", 2)]


def test_a_replayed_epoch_counts_once_in_the_state(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0), ("a", 1))
    feed.add(("a", 2))
    with Epochs(running_count(feed.stream()), checkpoint) as epochs:
        epochs.run()
    (checkpoint / "commits" / "1").unlink()
    feed.add(("a", 3))
    with Epochs(running_count(feed.stream()), checkpoint) as replayed:
        replayed.run()
    assert epochs.rows == {0: [("a", 2)], 1: [("a", 3)]}
    assert replayed.rows == {1: [("a", 3)], 2: [("a", 4)]}


# --- checkpoints and settings -------------------------------------------------------------------------------------


def test_the_logs_of_a_checkpoint_look_as_we_read_them(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 0))
    with Epochs(per_minute(feed.stream("orders")), checkpoint) as epochs:
        epochs.run()
    version, metadata, *offsets = (checkpoint / "offsets" / "0").read_text().split("\n")
    assert version.startswith("v")
    assert json.loads(metadata)["batchWatermarkMs"] == 0
    assert offsets == ['orders:{"logOffset":0}']
    version, commit = (checkpoint / "commits" / "0").read_text().split("\n")
    assert version.startswith("v")
    assert "stateUniqueIds" in json.loads(commit)
    version, listing = (checkpoint / "sources" / "orders" / "0").read_text().split("\n")
    assert json.loads(listing)["batchId"] == 0
    assert json.loads((checkpoint / "metadata").read_text())["id"] == str(epochs.query.id)
    assert list((checkpoint / "state").rglob("*.changelog"))


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_a_truncated_log_stops_spark_for_good(feed: Feed, checkpoint: Path, log: str) -> None:
    """Why `Checkpoint.prepare` exists."""
    feed.add(("a", 0))
    with Epochs(feed.stream(), checkpoint) as epochs:
        epochs.run()
    (checkpoint / log / "0").write_text("")
    (checkpoint / log / ".0.crc").unlink()
    with Epochs(feed.stream(), checkpoint) as restarted, pytest.raises(PySparkException):
        restarted.run()


def test_every_setting_is_in_force(spark: SparkSession) -> None:
    known = dict(spark.sparkContext.getConf().getAll())
    for name, value in (*SETTINGS, *settings_of("local[2]", 2)):
        # Spark puts options of its own around those for Java.
        assert value in known[name].split() if name.endswith("JavaOptions") else known[name] == value, name


def test_java_keeps_its_temporary_files_where_it_is_told(spark: SparkSession) -> None:
    asked = spark.sql("select reflect('java.lang.System', 'getProperty', 'java.io.tmpdir')").first()
    assert asked is not None
    folder = Path(asked[0])
    assert 'the "temporary" files' in folder.name
    assert any(folder.glob("artifacts-*"))
    assert any(folder.glob("blockmgr-*"))


def test_a_column_is_built_with_one_question_to_java(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[str] = []
    client = type(spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]
    ask = client.send_command

    def heard(self: Any, command: str, *more: Any, **named: Any) -> Any:
        questions.append(command.partition("\n")[0])
        return ask(self, command, *more, **named)

    F.col("known")
    monkeypatch.setattr(client, "send_command", heard)
    F.col("a")
    # Besides, Java is told of objects that are not needed any more.
    assert [question for question in questions if question != "m"] == ["c"]


def test_workers_take_pyspark_as_it_is_installed(spark: SparkSession) -> None:
    taken = spark.sparkContext.parallelize([0], 1).map(lambda _: str(__import__("pyspark").__file__)).first()
    assert ".zip" not in taken


def test_text_cannot_name_a_file_as_a_table(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("select * from text.`/etc/hostname`")


def test_the_java_process_is_known_to_be_alive(spark: SparkSession) -> None:
    assert jvm_is_alive(spark)
