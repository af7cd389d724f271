"""Side rows take one way through a branch, and are counted after a crash too, where sinks that hold them read none."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark.protocol.messages import Accounting
from tidemark.testing.harness import Harness
from tidemark.testing.scripted_source import Event

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

HEAD = """\
tidemark: 1
name: sides
sources:
  orders:
    files: {path: in, format: jsonl}
    schema: {store: string, t: timestamp(s)}
    event_time: t
    watermark: {delay: 0s}
operators:
"""
BEHIND_BOTH = """\
  per_minute: {type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {n: count()}}
  of_s1: {type: filter, input: per_minute.late, where: "store = 's1'"}
  seen: {type: map, input: orders.errors, set: {size: length(_raw)}}
sinks:
  out: {input: per_minute, sqlite: {path: out.db, table: out, mode: append}}
  late: {input: of_s1, files: {path: late, format: jsonl}}
  all_late: {input: per_minute.late, files: {path: all_late, format: jsonl}}
  bad: {input: seen, files: {path: bad, format: jsonl}}
"""
JOB = HEAD + BEHIND_BOTH
FIRST: list[Event] = [{"store": "s1", "t": 600}]
WITH_SIDE_ROWS: list[Event] = [
    {"store": "s1", "t": 10}, {"store": "s2", "t": 20}, {"store": "s1", "t": 600}, {"_raw": "{nonsense"},
]  # fmt: skip


@pytest.mark.parametrize("lost", [(), ("all_late",), ("late", "bad")], ids=["none", "one of a port", "the others"])
def test_an_epoch_that_sinks_hold_is_counted_again(spark: SparkSession, tmp_path: Path, lost: tuple[str, ...]) -> None:
    with Harness(JOB, spark, folder=tmp_path) as job:
        for events in (FIRST, WITH_SIDE_ROWS):
            job.epoch({"orders": events})
        expected = told(job)
    forget_last_epoch(tmp_path / "state" / "per_minute")
    for sink in lost:
        newest_file(Path(job.plan.sinks[sink].options["path"])).unlink()
    with Harness(JOB, spark, folder=tmp_path, attempt=2) as again:
        assert told(again) == expected


def told(job: Harness) -> tuple[Accounting, dict[str, list[str]]]:
    counted = job.accounting()
    rows = {sink: [str(row.get("store")) for row in job.rows(sink)] for sink in ("late", "all_late", "bad")}
    assert {sink: len(stores) for sink, stores in rows.items()} == {"late": 1, "all_late": 2, "bad": 1}
    assert (counted.operators["per_minute"].late, counted.operators["per_minute"].passed) == (2, 2)
    assert (counted.operators["of_s1"].rows_in, counted.operators["of_s1"].filtered) == (2, 1)
    assert counted.operators["seen"].rows_out == counted.sources["orders"].errors == 1
    return counted, rows


def newest_file(folder: Path) -> Path:
    return max(folder.glob("*.arrow"), key=lambda path: int(path.stem))


def forget_last_epoch(checkpoint: Path) -> None:
    """As after a crash between the last sink's commit and the record of the epoch."""
    newest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    for path in (checkpoint / "commits" / str(newest), checkpoint / "commits" / f".{newest}.crc"):
        path.unlink()
    (checkpoint / "tidemark" / str(newest)).unlink()


BEHIND_A_PORT = """\
  per_minute: {type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {n: count()}}
  by_store: {type: branch, input: per_minute.late, when: {s1: "store = 's1'"}}
sinks:
  out: {input: per_minute, console: {}}
  late_s1: {input: by_store.s1, console: {}}
  late: {input: by_store, console: {}}
"""
BEFORE_A_WINDOW = """\
  by_store: {type: branch, input: orders, when: {s1: "store = 's1'"}}
  all: {type: union, inputs: [by_store.s1, by_store]}
  per_minute: {type: window, input: all, key: [store], window: {tumbling: 1m}, aggregate: {n: count()}}
sinks:
  out: {input: per_minute, console: {}}
  late: {input: per_minute.late, console: {}}
"""


@pytest.mark.parametrize(
    ("rest", "late"), [(BEHIND_A_PORT, {"late_s1": ["s1"], "late": ["s2"]}), (BEFORE_A_WINDOW, {"late": ["s1", "s2"]})]
)
def test_a_branch_sends_a_late_row_one_way(spark: SparkSession, rest: str, late: dict[str, list[str]]) -> None:
    with Harness(HEAD + rest, spark) as job:
        for events in (FIRST, WITH_SIDE_ROWS):
            job.epoch({"orders": events})
        assert {sink: sorted(row["store"] for row in job.rows(sink)) for sink in late} == late
        counted = job.accounting().operators["per_minute"]
        assert (counted.rows_in, counted.passed, counted.late) == (4, 2, 2)
