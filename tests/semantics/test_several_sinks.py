"""Several sinks on one operator get the same rows, whatever Spark does to compute them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.session_run import file_rows, run_drained

pytestmark = pytest.mark.semantics

JOB = """
tidemark: 1
name: two-sinks
sources:
  events:
    generator:
      count: 200
      rate: 10
      start: "2026-01-01T00:00:00Z"
      columns: {id: n % 7, text: "concat('t', n)", v: n * 2}
operators:
  last: OPERATOR
sinks:
  one: {input: last, files: {path: one, format: jsonl}}
  two: {input: last, files: {path: two, format: jsonl}}
"""
SORTED = "least: min(text), most: max(text), n: count()"
OBJECTS = "first: first(text), some: 'collect_set(text, 5)', by: 'max_by(text, v)', top: 'approx_top_k(text, 2)'"
WINDOWS = ("tumbling: 5s", "sliding: 10s, every: 5s", "session: 1s")
OPERATORS = [
    *[
        f"{{type: window, input: events, key: [id], window: {{{window}}}, aggregate: {{{SORTED}}}}}"
        for window in WINDOWS
    ],
    f"{{type: window, input: events, key: [id], window: {{tumbling: 5s}}, aggregate: {{{OBJECTS}}}}}",
    f"{{type: aggregate, input: events, key: [id], aggregate: {{{SORTED}}}}}",
    "{type: dedup, input: events, by: [id], within: 1m}",
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_two_sinks_hold_the_same(operator: str, spark: SparkSession, tmp_path: Path) -> None:
    ended = run_drained(JOB.replace("OPERATOR", operator), tmp_path, spark)
    one, two = (sorted(map(str, file_rows(tmp_path / sink))) for sink in ("one", "two"))
    assert one == two
    assert len(one) == ended.total.sinks["one"].rows == ended.total.operators["last"].rows_out > 0
