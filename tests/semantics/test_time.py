"""What moves the watermark and what does not, on a job with two sources, two terminal operators and three sinks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidemark.testing.harness import Harness

pytestmark = pytest.mark.semantics

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = """
tidemark: 1
name: time
sources:
  web:
    generator: {count: 1, partitions: 2, columns: {id: "''", ts: "timestamp_seconds(n)"}}
    event_id: id
    event_time: ts
    watermark: {delay: 5s, idle_timeout: 30s}
  app:
    generator: {count: 1, columns: {id: "''", ts: "timestamp_seconds(n)"}}
    event_id: id
    event_time: ts
    watermark: {delay: 10s, idle_timeout: 60s}
operators:
  both: {type: union, inputs: [web, app]}
  per_minute: {type: window, input: both, key: {src: _source}, window: {tumbling: 1m}, aggregate: {n: count()}}
  visits: {type: window, input: web, key: [], window: {session: 20s}, aggregate: {n: count()}}
sinks:
  out: {input: per_minute, files: {path: out, format: jsonl}}
  table: {input: per_minute, sqlite: {path: out.db, table: counts, key: [src, window_start]}}
  late: {input: per_minute.late, files: {path: late, format: jsonl}}
  sessions: {input: visits, files: {path: sessions, format: jsonl}}
"""


def event(name: str, seconds: float, partition: int = 0) -> dict[str, Any]:
    return {"id": name, "ts": NOON + timedelta(seconds=seconds), "_partition": partition}


def counts(rows: list[dict[str, Any]]) -> set[tuple[str, float, int]]:
    return {(row["src"], (row["window_start"] - NOON).total_seconds(), row["n"]) for row in rows}


def test_a_slow_partition_or_source_holds_the_watermark_and_an_idle_one_does_not(spark: SparkSession) -> None:
    with Harness(JOB, spark) as job:
        job.epoch({"web": [event("a", 10)]})
        assert job.watermark("per_minute") is None, "partition 1 has no event yet"
        job.epoch({"web": [event("b", 200, 1)], "app": [event("c", 20)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=5)
        assert job.watermark("visits") == NOON + timedelta(seconds=5)
        job.epoch({"web": [event("d", 300)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=10), "the app source is slow"
        assert job.watermark("visits") == NOON + timedelta(seconds=195), "and does not matter here"
        assert job.rows("out") == []
        job.advance_time(31)
        assert job.watermark("per_minute") == NOON + timedelta(seconds=10), "web is idle, app is not yet"
        job.advance_time(30)
        # All are idle: the largest event time, moved on by the 61 seconds since, less the delay.
        assert job.watermark("per_minute") == NOON + timedelta(seconds=300 + 61 - 5)
        assert counts(job.rows("out")) == {("web", 0.0, 1), ("app", 0.0, 1), ("web", 180.0, 1)}
        assert counts(job.rows("table")) == counts(job.rows("out"))


def test_a_partition_comes_back_with_its_next_event_and_the_watermark_never_goes_back(spark: SparkSession) -> None:
    with Harness(JOB, spark) as job:
        job.epoch({"web": [event("a", 100), event("b", 100, 1)], "app": [event("c", 500)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=95)
        job.advance_time(31)
        assert job.watermark("per_minute") == NOON + timedelta(seconds=490), "web left the minimum"
        job.epoch({"web": [event("d", 450)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=490)
        assert [row["id"] for row in job.rows("late")] == ["d"]
        job.epoch({"web": [event("e", 600)], "app": [event("f", 900)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=595), "partition 1 of web is still idle"
        job.epoch({"web": [event("g", 700, 1)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=595)


def test_a_restart_with_a_backlog_calls_nothing_late(spark: SparkSession) -> None:
    with Harness(JOB, spark) as job:
        job.epoch({"web": [event("a", 10), event("b", 20, 1)], "app": [event("c", 30)]})
        job.advance_time(29)
        job.restart()
        # The 29 seconds before the restart do not count, nor does the downtime itself.
        job.advance_time(29)
        assert job.watermark("per_minute") == NOON + timedelta(seconds=5)
        job.epoch({"web": [event("d", 12), event("e", 3600, 1)], "app": [event("f", 3600)]})
        job.drain()
        assert job.rows("late") == []
        assert ("web", 0.0, 3) in counts(job.rows("out"))


def test_an_event_on_the_edge_belongs_to_the_window_it_begins(spark: SparkSession) -> None:
    with Harness(JOB, spark) as job:
        job.epoch({"web": [event("a", 59.999999), event("b", 60.0, 1)], "app": [event("c", 69.999)]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=54.999999)
        job.epoch({"web": [event("d", 65), event("e", 65, 1)], "app": [event("f", 70)]})
        assert counts(job.rows("out")) == {("web", 0.0, 1)}, "a window fires when the watermark reaches its end"
        job.epoch({"web": [event("g", 59.9), event("h", 60)]})
        assert [row["id"] for row in job.rows("late")] == ["g"]
        job.drain()
        assert counts(job.rows("out")) == {("web", 0.0, 1), ("web", 60.0, 4), ("app", 60.0, 2)}
        assert {(row["src"], row["n"]) for row in job.rows("table")} == {("web", 1), ("web", 4), ("app", 2)}


LONELY = """
tidemark: 1
name: lonely
sources:
  web:
    generator: {count: 1, columns: {id: "''", ts: "timestamp_seconds(n)"}}
    event_time: ts
    watermark: {delay: 5s}
operators:
  per_minute: {type: window, input: web, window: {tumbling: 1m}, aggregate: {n: count()}}
sinks:
  out: {input: per_minute, files: {path: out, format: jsonl}}
  late: {input: per_minute.late, files: {path: late, format: jsonl}}
  bad: {input: web.errors, files: {path: bad, format: jsonl}}
"""


def test_the_last_second_of_time_makes_nothing_late(spark: SparkSession) -> None:
    """A time that many systems write for "never": Spark would take it for the newest of the only source."""
    never = {"id": "never", "ts": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "_partition": 0}
    with Harness(LONELY, spark) as job:
        for second in (10, 20, 30):
            job.epoch({"web": [event("a", second), never]})
        assert job.watermark("per_minute") == NOON + timedelta(seconds=25)
        job.drain()
        assert [row["n"] for row in job.rows("out")] == [3]
        assert job.rows("late") == []
        assert [row["_error_code"] for row in job.rows("bad")] == ["future_event"] * 3
