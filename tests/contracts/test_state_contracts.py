"""What moving and measuring state relies on in Spark 4.3.0, each by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from contracts.streaming import Epochs, Feed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.waiting import wait_until

from tidemark.data_plane.spark_internals import repartition_state, stage_seconds

CONF = "spark.sql.shuffle.partitions"


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "in")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def counts(stream: DataFrame) -> DataFrame:
    return stream.groupBy("k", F.window("time", "10 seconds")).count()


def logged(checkpoint: Path, epoch: int) -> tuple[dict[str, object], list[str]]:
    _, metadata, *offsets = (checkpoint / "offsets" / str(epoch)).read_text().split("\n")
    return json.loads(metadata), offsets


def test_a_repartition_adds_an_epoch_with_the_same_input_and_watermark(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 1), ("b", 2))
    feed.add(("a", 11), ("c", 12))
    with Epochs(counts(feed.stream()), checkpoint, hand_over={0: 5, 1: 10}) as epochs:
        epochs.run()
    last = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    for entry in (checkpoint / "offsets").glob("[0-9]*"):
        if int(entry.name) > last:
            entry.unlink()
    repartition_state(feed.spark, str(checkpoint), 3)
    (before, offsets), (after, same_offsets) = logged(checkpoint, last), logged(checkpoint, last + 1)
    assert offsets == same_offsets
    assert before["batchWatermarkMs"] == after["batchWatermarkMs"]
    assert after["conf"] == {**before["conf"], CONF: "3"}  # type: ignore[dict-item]
    commits = [(checkpoint / "commits" / str(epoch)).read_text().split("\n")[1] for epoch in (last, last + 1)]
    marks = [json.loads(commit)["nextBatchWatermarkMs"] for commit in commits]
    assert marks[0] == marks[1]
    assert len(json.loads(commits[1])["stateUniqueIds"]["0"]) == 3


def test_state_can_be_read_at_a_committed_epoch(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 1), ("b", 2), ("a", 3))
    with Epochs(counts(feed.stream()), checkpoint) as epochs:
        epochs.run()
    reader = feed.spark.read.format("statestore").option("operatorId", 0).option("batchId", 0)
    rows = reader.load(str(checkpoint)).select("key.k", "value.count").collect()
    assert sorted(tuple(row) for row in rows) == [("a", 2), ("b", 1)]


def test_sources_are_reported_in_the_order_of_their_names(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    first, second = Feed(spark, tmp_path / "zulu"), Feed(spark, tmp_path / "alpha")
    first.add(("a", 1))
    for number in range(3):
        second.add(("b", number))
    both = first.stream("zulu").unionByName(second.stream("alpha"))
    with Epochs(both, checkpoint) as epochs:
        epochs.run()
        names = epochs.execution.source_names()
        progress = epochs.query.lastProgress
        assert progress is not None
        found = {name: source.description for name, source in zip(names, progress.sources, strict=True)}
    assert set(found) == {"zulu", "alpha"}
    for name, description in found.items():
        assert description.endswith(f"/{name}]")


def test_task_time_is_known_by_the_jobs_of_a_query(feed: Feed, checkpoint: Path) -> None:
    feed.add(("a", 1), ("b", 2))
    with Epochs(counts(feed.stream()), checkpoint) as epochs:
        epochs.run()
        jobs = feed.spark.sparkContext.statusTracker().getJobIdsForGroup(str(epochs.query.runId))
    times = [stage_seconds(feed.spark, job) for job in jobs]
    assert [len(job) for job in times] == [2]
    assert sum(times[0]) > 0


def test_time_of_stages_that_were_skipped_is_known_too(spark: SparkSession) -> None:
    frame = spark.range(100).repartition(2).groupBy((F.col("id") % 3).alias("k")).count().persist()
    group = "skipped stages"
    spark.sparkContext.setJobGroup(group, group)
    frame.count()
    frame.count()
    tracker = spark.sparkContext.statusTracker()
    # Spark tells of a job a little after it has run.
    wait_until(lambda: len(tracker.getJobIdsForGroup(group)) == 2)
    assert all(sum(stage_seconds(spark, job)) >= 0 for job in tracker.getJobIdsForGroup(group))
    frame.unpersist()


@pytest.fixture(autouse=True)
def no_job_group(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
