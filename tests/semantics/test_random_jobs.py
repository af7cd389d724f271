"""Random jobs run to their end, account for every row, and give equal sinks equal rows, in epochs of any size."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from semantics.random_jobs import RandomJob
from support.session_run import run_drained

from tidemark.protocol.messages import Accounting

pytestmark = pytest.mark.semantics

Rows = list[str]
# Of many that were tried, two that have an operator of nearly every kind between them.
SEEDS = (7, 10)


def held(folder: Path, sink: dict[str, Any]) -> Rows:
    """What a sink holds, in a form that two of its kind can be compared by."""
    if "sqlite" in sink:
        with closing(sqlite3.connect(folder / sink["sqlite"]["path"])) as database:
            return sorted(map(repr, database.execute("SELECT * FROM t")))
    files = (folder / sink["files"]["path"]).glob("part-*")
    return sorted(row for file in files for row in READERS[sink["files"]["format"]](file))


def _csv(file: Path) -> Rows:
    with file.open(newline="") as lines:
        return [repr(row) for row in list(csv.reader(lines))[1:]]


READERS: dict[str, Callable[[Path], Rows]] = {
    "jsonl": lambda file: file.read_text().splitlines(),
    "csv": _csv,
    "parquet": lambda file: [json.dumps(row, default=str) for row in pq.read_table(file).to_pylist()],
}


def check_accounting(total: Accounting, job: RandomJob) -> None:
    for source in total.sources.values():
        assert source.events_in == source.accepted + source.errors
    for name, counts in total.operators.items():
        if job.operators[name]["type"] in ("filter", "dedup", "window"):
            assert counts.rows_in == counts.passed + counts.filtered + counts.duplicates + counts.late, name


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_job(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    job = RandomJob(seed)
    assert job.sinks
    found: list[dict[str, Rows]] = []
    for parallelism, max_events in ((2, 1000), (3, 17)) if job.same_in_any_way else ((2, 50),):
        folder = tmp_path / str(max_events)
        total = run_drained(job.text(parallelism, max_events), folder, spark).total
        check_accounting(total, job)
        found.append({name: held(folder, sink) for name, sink in job.sinks.items()})
        rows = {name: total.sinks[name].rows for name in job.sinks}
        assert {name: len(kept) for name, kept in found[-1].items()} == rows
        by_input = {(sink["input"], rows[name]) for name, sink in job.sinks.items()}
        assert len(by_input) == len({sink["input"] for sink in job.sinks.values()}), "sinks of one port hold as many"
    assert found[0] == found[-1], "in epochs of another size, and with another parallelism"
