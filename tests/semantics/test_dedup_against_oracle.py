"""Dedup is exact about its span, in front of a window too, and says what it did with every event."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.oracle import Clock, DedupOracle, Event, WindowOracle, tumbling
from support.random_events import START, milliseconds, record, wild_epochs

from tidemark.testing.harness import Harness

pytestmark = pytest.mark.semantics

PARTITIONS = 2
JOB = """
tidemark: 1
name: dedup
sources:
  events:
    generator: {count: 1, partitions: 2, columns: {id: "''", key: "''", value: "1.5D", ts: "timestamp_seconds(n)"}}
    event_id: id
    event_time: ts
    watermark: {delay: 5s, idle_timeout: 30s}
operators:
  once: {type: dedup, input: events, by: [id], within: 3m}
  results: {type: window, input: once, key: [key], window: {tumbling: 1m}, aggregate: {n: count(), total: sum(value)}}
sinks:
  out: {input: results, files: {path: out, format: jsonl}}
  late: {input: results.late, files: {path: late, format: jsonl}}
  too_old: {input: once.late, files: {path: too_old, format: jsonl}}
"""


def test_wild_events_through_dedup_and_window(spark: SparkSession) -> None:
    clock, once = Clock(PARTITIONS, 5_000, 30_000), DedupOracle(180_000)
    results = WindowOracle(tumbling(60_000))
    epochs = wild_epochs(seed=3, epochs=6, events=150, partitions=PARTITIONS)
    with Harness(JOB, spark) as job:
        for index, epoch in enumerate(epochs):
            job.epoch({"events": [record(event) for event in epoch]})
            accepted = [event for event in epoch if not event.bad and not event.future]
            for event in once.take(accepted, clock.mark):
                results.take(event, clock.mark)
            clock.saw(accepted)
            if index in (1, 3):
                job.restart()
        job.drain()
        assert all((once.late, once.duplicates, results.late)), "the test misses a case"
        _compare(job, once, results)


def test_an_equal_event_a_full_span_later_passes_in_the_same_epoch(spark: SparkSession) -> None:
    times = [0, 60_000, 179_999, 180_000, 359_999, 360_000]
    with Harness(JOB, spark) as job:
        job.epoch({"events": [record(Event("x", START + time, "a", 1.0, 0)) for time in reversed(times)]})
        counts = job.accounting().operators["once"]
        assert (counts.rows_in, counts.passed, counts.duplicates, counts.late) == (6, 3, 3, 0)


def _compare(job: Harness, once: DedupOracle, results: WindowOracle) -> None:
    counts = job.accounting().operators["once"]
    assert counts.rows_in == counts.passed + counts.duplicates + counts.late
    assert (counts.duplicates, counts.late) == (once.duplicates, len(once.late))
    assert Counter(row["id"] for row in job.rows("too_old")) == Counter(once.late)
    window = job.accounting().operators["results"]
    assert window.rows_in == results.arrived == counts.passed == window.passed + window.late
    late = [(row["id"], _window(row)) for row in job.rows("late")]
    assert Counter(late) == Counter(results.late)
    expected = {
        key: (len(events), pytest.approx(sum(event.value for event in events), rel=1e-9))
        for key, events in results.results().items()
    }
    assert {(row["key"], _window(row)): (row["n"], row["total"]) for row in job.rows("out")} == expected


def _window(row: dict[str, Any]) -> tuple[int, int]:
    return milliseconds(row["window_start"]), milliseconds(row["window_end"])
