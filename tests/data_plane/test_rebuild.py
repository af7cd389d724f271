"""A new aggregate in a running job: its state is made anew by replay, and every window is delivered exactly once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from data_plane.moving_jobs import MovingJob
from faults import workload
from pyspark.sql import SparkSession

from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.rebuild import why_not_rebuildable
from tidemark.epoch_records import EpochRecords
from tidemark.errors import NotFresh
from tidemark.protocol.message import Message
from tidemark.protocol.messages import EpochCommitted
from tidemark.protocol.start import Rebuild

SOURCES = workload.JOB.partition("operators:")[0]
BEFORE = f"""{SOURCES}
operators:
  paid: {{type: filter, input: orders, where: "amount > 0"}}
  bought: {{type: map, input: paid, select: {{store: store, amount: amount}}}}
  activity: {{type: union, inputs: [bought, clicks]}}
  per_minute:
    type: window
    input: activity
    key: [store]
    window: {{tumbling: 1m}}
    aggregate: {{events: count(), revenue: sum(amount)}}
  moving: {{type: window, input: paid, key: [user], window: {{sliding: 2m, every: 1m}}, aggregate: {{orders: count()}}}}
sinks:
  archive: {{input: per_minute, files: {{path: archive, format: jsonl}}}}
  moving_log: {{input: moving, files: {{path: moving_log, format: jsonl}}}}
  late_minutes: {{input: per_minute.late, files: {{path: late_minutes, format: jsonl}}}}
  bad: {{input: orders.errors, files: {{path: bad, format: jsonl}}}}
"""
AFTER = BEFORE.replace("revenue: sum(amount)", "revenue: sum(amount), biggest: max(amount)")
ALSO_SLIDING = AFTER.replace("aggregate: {orders: count()}", "aggregate: {orders: count(), spent: sum(amount)}")
FOLDERS = ("archive", "moving_log", "late_minutes", "bad")
WHEN = ("watermark", "lateness_ms", "_ingestion_time")


def rows(job: MovingJob, sink: str) -> list[dict[str, Any]]:
    paths = sorted((job.folder / sink).glob("part-*"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def without(found: list[dict[str, Any]], *names: str) -> list[str]:
    kept = ({name: value for name, value in row.items() if name not in names} for row in found)
    return sorted(json.dumps(row, sort_keys=True) for row in kept)


def epochs(messages: list[Message], query: str) -> list[int]:
    return [each.epoch for each in messages if isinstance(each, EpochCommitted) and each.query == query]


@pytest.fixture(scope="module")
def quiet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> MovingJob:
    """The last definition from the start to the end."""
    folder = tmp_path_factory.mktemp("input")
    workload.prepare(folder)
    job = MovingJob(spark, folder / "in", tmp_path_factory.mktemp("quiet"), text=ALSO_SLIDING)
    job.run(drain=True)
    return job


@pytest.mark.semantics
@pytest.mark.slow
def test_a_new_aggregate_is_rebuilt_and_nothing_is_delivered_twice(quiet: MovingJob, tmp_path: Path) -> None:
    job = replace(quiet, folder=tmp_path, attempt=0, text=BEFORE)
    first = job.run_until(1)
    for query in ("per_minute", "moving"):
        read = sum(each.events for each in first if isinstance(each, EpochCommitted) and each.query == query)
        assert EpochRecords(tmp_path / "state" / query).read(epochs(first, query)[-1])["events"] == read > 0
    job.text = AFTER
    second = job.run_until(max(epochs(first, "per_minute")) + 1, prepare=Rebuild(queries=("per_minute",)))
    assert epochs(second, "per_minute")[0] == epochs(first, "per_minute")[-1] + 1
    # Another one is rebuilt while the first goes on; and it is asked for twice, as after a crash.
    job.text = ALSO_SLIDING
    job.run(drain=True, prepare=Rebuild(queries=("moving",)))
    job.run(drain=True, prepare=Rebuild(queries=("moving",)))

    for sink, added in (("archive", "biggest"), ("moving_log", "spent")):
        found, expected = rows(job, sink), rows(quiet, sink)
        assert without(found, added) == without(expected, added)
        rebuilt = [row for row in found if added in row]
        assert 0 < len(rebuilt) < len(found)
        assert set(without(rebuilt)) <= set(without(expected))
    for sink in ("late_minutes", "bad"):
        assert without(rows(job, sink), *WHEN) == without(rows(quiet, sink), *WHEN)


REFUSED = (
    ("window: {tumbling: 1m}", "window: {session: 1m}", "per_minute is a session window"),
    (
        "inputs: [bought, clicks]}",
        "inputs: [once, clicks]}\n  once: {type: dedup, input: bought, by: [store], within: 1m}",
        "several stateful operators",
    ),
    (
        "type: window\n    input: activity\n    key: [store]\n    window: {tumbling: 1m}",
        "type: aggregate\n    input: activity\n    key: [store]",
        "is a running aggregate",
    ),
)


@pytest.mark.parametrize(("old", "new", "reason"), REFUSED, ids=["session", "dedup", "aggregate"])
def test_what_may_depend_on_events_of_any_age_is_not_rebuilt(old: str, new: str, reason: str) -> None:
    text = BEFORE.replace(old, new)
    assert text != BEFORE
    if "aggregate\n" in new:
        text = text.replace(
            "  late_minutes: {input: per_minute.late, files: {path: late_minutes, format: jsonl}}\n", ""
        )
    plan = compile_job(text).plan
    query = next(query for query in plan.queries if query.id == "per_minute")
    assert reason in (why_not_rebuildable(plan, query) or "")


def test_a_window_can_be_rebuilt() -> None:
    plan = compile_job(AFTER).plan
    assert [why_not_rebuildable(plan, query) for query in plan.queries] == [None, None]


@pytest.mark.slow
def test_a_query_that_cannot_be_rebuilt_leaves_the_job_as_it_was(quiet: MovingJob, tmp_path: Path) -> None:
    job = replace(quiet, folder=tmp_path, attempt=0, text=BEFORE)
    job.run_until(1)
    kept = sorted(path.name for path in (tmp_path / "state").iterdir())
    job.text = BEFORE.replace("window: {tumbling: 1m}", "window: {session: 1m}")
    with pytest.raises(NotFresh, match="session window"):
        job.run(prepare=Rebuild(queries=("per_minute",)))
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == kept
