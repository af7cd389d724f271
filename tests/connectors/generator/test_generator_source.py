"""Generated events as a job sees them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.session_run import file_rows, run_drained

from tidemark.connectors.generator.source import Numbers

JOB = """
tidemark: 1
name: numbers
sources:
  numbers: {generator: {count: 3, rate: 1, start: "2026-01-01T00:00:00Z", columns: {n: "n * 10", value: "n + 1"}}}
sinks:
  out: {input: numbers, files: {path: out, format: jsonl}}
"""


def test_a_column_may_be_named_like_the_number(tmp_path: Path, spark: SparkSession) -> None:
    run_drained(JOB, tmp_path, spark)
    assert sorted((row["n"], row["value"]) for row in file_rows(tmp_path / "out")) == [(0, 1), (10, 2), (20, 3)]


@pytest.mark.parametrize(("events", "tasks"), [(0, 0), (1, 1), (9_999, 1), (10_000, 2), (35_000, 4), (1_000_000, 4)])
def test_few_events_are_one_task_and_all_are_made_once(events: int, tasks: int) -> None:
    options = {"count": "0", "rate": "1", "startedMs": "0", "maxEvents": "500000", "slots": "4"}
    reader = Numbers(options).streamReader(None)
    parts = reader.partitions({"n": 7}, {"n": 7 + events})
    assert len(parts) == tasks
    batches = [batch for part in parts for batch in reader.read(part)]
    made = pa.Table.from_batches(batches, pa.schema([("n", pa.int64())]))
    assert made.column("n").to_pylist() == list(range(7, 7 + events))
