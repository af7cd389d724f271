"""Every window kind over random events: results, late rows and counts equal an independent account."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.oracle import Clock, Event, SessionOracle, Window, WindowOracle, sliding, tumbling
from support.random_events import milliseconds, rearranged, record, tame_events, wild_epochs

from tidemark.testing.harness import Harness

pytestmark = pytest.mark.semantics

PARTITIONS = 3
DELAY = 5_000
IDLE = 30_000
JOB = """
tidemark: 1
name: windows
parallelism: {parallelism}
sources:
  events:
    generator: {{count: 1, partitions: 3, columns: {{id: "''", key: "''", value: "1.5D", ts: "timestamp_seconds(n)"}}}}
    event_id: id
    event_time: ts
    watermark: {{delay: 5s, idle_timeout: 30s}}
operators:
  kept: {{type: filter, input: events, where: "value < 240"}}
  results:
    type: window
    input: kept
    key: [key]
    window: {window}
    aggregate:
      n: count()
      total: sum(value)
      low: min(value)
      high: max(value)
      mean: avg(value)
      some: count_if(value > 100)
      ids: count_distinct(id)
      first_id: first(id)
      last_id: last(id)
      best: max_by(id, value)
      worst: min_by(id, value)
      spread: stddev(value)
      list: collect_list(value, 3)
      set: collect_set(value, 3)
sinks:
  out: {{input: results, files: {{path: out, format: jsonl}}}}
  late: {{input: results.late, files: {{path: late, format: jsonl}}}}
  bad: {{input: events.errors, files: {{path: bad, format: jsonl}}}}
"""


@dataclass(frozen=True)
class Kind:
    window: str
    oracle: WindowOracle | SessionOracle


def kinds() -> dict[str, Kind]:
    return {
        "tumbling": Kind("{tumbling: 1m}", WindowOracle(tumbling(60_000))),
        "offset": Kind("{tumbling: 50s, offset: 7s}", WindowOracle(tumbling(50_000, 7_000))),
        "sliding": Kind("{sliding: 1m, every: 20s}", WindowOracle(sliding(60_000, 20_000))),
        "uneven": Kind("{sliding: 50s, every: 15s}", WindowOracle(sliding(50_000, 15_000))),
        "session": Kind("{session: 4s}", SessionOracle(4_000)),
    }


@pytest.mark.parametrize("name", kinds())
def test_wild_events_give_what_the_oracle_says(name: str, spark: SparkSession) -> None:
    kind, clock = kinds()[name], Clock(PARTITIONS, DELAY, IDLE)
    epochs = wild_epochs(seed=len(name), epochs=6, events=150, partitions=PARTITIONS)
    # From the fourth epoch on one partition is silent: it holds the watermark until it is idle.
    epochs[3:] = [[event for event in epoch if event.partition != 1] for epoch in epochs[3:]]
    with Harness(JOB.format(window=kind.window, parallelism=2), spark) as job:
        for index, epoch in enumerate(epochs):
            job.epoch({"events": [record(event) for event in epoch]})
            _account(kind.oracle, clock, epoch)
            assert _mark(job) == clock.mark
            if index == 2:
                job.restart()
            if index == 4:
                job.advance_time(31)
                clock.waited(31_000)
                _close(kind.oracle, clock.mark)
                assert _mark(job) == clock.mark
        job.drain()
        everything = [event for epoch in epochs for event in epoch]
        _compare_results(kind.oracle.results(), job.rows("out"))
        _compare_late(kind.oracle, job.rows("late"))
        _compare_accounting(kind.oracle, everything, job)


@pytest.mark.parametrize("name", ["tumbling", "sliding", "session"])
def test_arrival_order_epoch_size_and_parallelism_do_not_matter(name: str, spark: SparkSession) -> None:
    kind = kinds()[name]
    events = tame_events(seed=11, events=300, partitions=PARTITIONS, delay=DELAY)
    _batch(kind.oracle, events)
    for parallelism, size, order in ((2, 60, events), (3, 110, rearranged(events, seed=5))):
        with Harness(JOB.format(window=kind.window, parallelism=parallelism), spark) as job:
            for start in range(0, len(order), size):
                job.epoch({"events": [record(event) for event in order[start : start + size]]})
            job.drain()
            assert job.rows("late") == []
            _compare_results(kind.oracle.results(), job.rows("out"))


def _account(oracle: WindowOracle | SessionOracle, clock: Clock, epoch: list[Event]) -> None:
    """One epoch: judged by the watermark before it, which then moves on."""
    accepted = [event for event in epoch if not event.bad and not event.future]
    for event in accepted:
        if event.value < 240:
            oracle.take(event, clock.mark)
    clock.saw(accepted)
    _close(oracle, clock.mark)


def _close(oracle: WindowOracle | SessionOracle, mark: int) -> None:
    if isinstance(oracle, SessionOracle):
        oracle.close(mark)


def _batch(oracle: WindowOracle | SessionOracle, events: list[Event]) -> None:
    for event in events:
        if event.value < 240:
            oracle.take(event, 0)


def _mark(job: Harness) -> int:
    mark = job.watermark()
    return 0 if mark is None else milliseconds(mark)


def _compare_results(expected: dict[tuple[str, Window], list[Event]], rows: list[dict[str, Any]]) -> None:
    actual = {(row["key"], (milliseconds(row["window_start"]), milliseconds(row["window_end"]))): row for row in rows}
    assert len(actual) == len(rows), "a window came out twice"
    assert actual.keys() == expected.keys()
    for window, events in expected.items():
        _compare_aggregates(actual[window], events)


def _compare_aggregates(row: dict[str, Any], events: list[Event]) -> None:
    ordered = sorted(events, key=lambda event: (event.time, event.id))
    values = [event.value for event in ordered]
    mean = sum(values) / len(values)
    exact = {
        "n": len(values),
        "total": sum(values),
        "low": min(values),
        "high": max(values),
        "some": sum(value > 100 for value in values),
        "ids": len({event.id for event in events}),
        "first_id": ordered[0].id,
        "last_id": ordered[-1].id,
        "best": max(ordered, key=lambda event: event.value).id,
        "worst": min(ordered, key=lambda event: event.value).id,
        "list": values[:3],
        "set": sorted(set(values))[:3],
    }
    assert {name: row[name] for name in exact} == exact
    assert row["mean"] == pytest.approx(mean, rel=1e-9)
    if len(values) > 1:
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
        assert row["spread"] == pytest.approx(deviation, rel=1e-9, abs=1e-9)
    else:
        assert row["spread"] is None


def _compare_late(oracle: WindowOracle | SessionOracle, rows: list[dict[str, Any]]) -> None:
    assert oracle.late, "the test has no late events"
    actual = [(row["id"], (milliseconds(row["window_start"]), milliseconds(row["window_end"]))) for row in rows]
    assert Counter(actual) == Counter(oracle.late)
    for row in rows:
        assert row["watermark"] >= row["window_end"]
        assert row["lateness_ms"] == milliseconds(row["watermark"]) - milliseconds(row["_event_time"])


def _compare_accounting(oracle: WindowOracle | SessionOracle, events: list[Event], job: Harness) -> None:
    counts = job.accounting()
    source, kept, window = counts.sources["events"], counts.operators["kept"], counts.operators["results"]
    errors = sum(event.bad or event.future for event in events)
    assert (source.events_in, source.errors) == (len(events), errors)
    assert source.events_in == source.accepted + source.errors
    assert kept.rows_in == source.accepted == kept.passed + kept.filtered
    assert kept.filtered == sum(event.value >= 240 for event in events if not event.bad and not event.future)
    assert window.rows_in == oracle.arrived == window.passed + window.late
    assert window.late == len(oracle.late)
    assert len(job.rows("bad")) == errors == counts.sinks["bad"].rows
    assert sum(row["n"] for row in job.rows("out")) == window.passed
