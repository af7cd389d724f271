"""Side rows after a crash: sinks that hold the epoch are not written again, and everything is counted all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark.protocol.messages import Accounting
from tidemark.testing.harness import Harness
from tidemark.testing.scripted_source import Event

pytestmark = pytest.mark.spark

JOB = """\
tidemark: 1
name: sides
sources:
  orders:
    files: {path: in, format: jsonl}
    schema: {store: string, t: timestamp(s)}
    event_time: t
    watermark: {delay: 0s}
operators:
  per_minute: {type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {n: count()}}
  of_s1: {type: filter, input: per_minute.late, where: "store = 's1'"}
  seen: {type: map, input: orders.errors, set: {size: length(_raw)}}
sinks:
  out: {input: per_minute, sqlite: {path: out.db, table: out, mode: append}}
  late: {input: of_s1, files: {path: late, format: jsonl}}
  bad: {input: seen, files: {path: bad, format: jsonl}}
"""
FIRST: list[Event] = [{"store": "s1", "t": 600}]
WITH_SIDE_ROWS: list[Event] = [
    {"store": "s1", "t": 10}, {"store": "s2", "t": 20}, {"store": "s1", "t": 600}, {"_raw": "{nonsense"},
]  # fmt: skip


def test_an_epoch_whose_sinks_hold_it_all_is_counted_again(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(JOB, spark, folder=tmp_path) as job:
        for events in (FIRST, WITH_SIDE_ROWS):
            job.epoch({"orders": events})
        expected = told(job)
    forget_last_epoch(tmp_path / "state" / "per_minute")
    with Harness(JOB, spark, folder=tmp_path, attempt=2) as again:
        assert told(again) == expected


def told(job: Harness) -> tuple[Accounting, list[str], int]:
    counted = job.accounting()
    late, bad = job.rows("late"), job.rows("bad")
    assert (counted.operators["per_minute"].late, counted.operators["per_minute"].passed) == (2, 2)
    assert (counted.operators["of_s1"].rows_in, counted.operators["of_s1"].filtered) == (2, 1)
    assert counted.operators["seen"].rows_out == counted.sources["orders"].errors == len(bad) == 1
    return counted, [row["store"] for row in late], len(bad)


def forget_last_epoch(checkpoint: Path) -> None:
    """As after a crash between the last sink's commit and the record of the epoch."""
    newest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    for path in (checkpoint / "commits" / str(newest), checkpoint / "commits" / f".{newest}.crc"):
        path.unlink()
    (checkpoint / "tidemark" / str(newest)).unlink()
