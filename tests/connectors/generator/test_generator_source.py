"""Generated events as a job sees them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from support.session_run import file_rows, run_drained

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
