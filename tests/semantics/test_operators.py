"""The other operators end to end: branch, flat_map, map, union, running aggregates and windows that emit updates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidemark.testing.harness import Harness

pytestmark = pytest.mark.semantics

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOURCE = """
tidemark: 1
name: operators
sources:
  texts:
    generator:
      count: 1
      columns: {id: "''", words: "''", size: "cast(n as int)", ts: "timestamp_seconds(n)"}
    event_id: id
    event_time: ts
    watermark: {delay: 0ms}
"""


def text(name: str, words: str, size: int, seconds: float) -> dict[str, Any]:
    return {"id": name, "words": words, "size": size, "ts": NOON + timedelta(seconds=seconds)}


def test_branches_words_and_a_union_of_them(spark: SparkSession) -> None:
    job = (
        SOURCE
        + """
operators:
  sized: {type: branch, input: texts, when: {big: "size > 10", small: "size < 3"}}
  loud: {type: map, input: sized.big, set: {words: "upper(words)"}, drop: [size]}
  quiet: {type: map, input: sized, select: {id: id, words: "lower(words)", ts: ts}}
  all: {type: union, inputs: [loud, quiet]}
  each: {type: flat_map, input: all, each: "split(words, ' ')", as: word}
  kept: {type: filter, input: each, where: "word <> ''"}
sinks:
  out: {input: kept, files: {path: out, format: jsonl}}
  small: {input: sized.small, files: {path: small, format: jsonl}}
  rest: {input: sized, files: {path: rest, format: jsonl}}
"""
    )
    with Harness(job, spark) as test:
        test.epoch({"texts": [text("a", "one two", 20, 1), text("b", "Three  x", 5, 2), text("c", "four", 1, 3)]})
        test.epoch({"texts": [{"id": "d", "words": None, "size": None, "ts": NOON}]})
        assert sorted(row["word"] for row in test.rows("out")) == ["ONE", "TWO", "three", "x"]
        assert [row["id"] for row in test.rows("small")] == ["c"]
        assert [row["id"] for row in test.rows("rest")] == ["b", "d"]
        assert list(test.rows("out")[0]) == ["id", "words", "ts", "word"]
        counts = test.accounting().operators
        assert (counts["sized"].rows_in, counts["loud"].rows_in, counts["quiet"].rows_in) == (4, 1, 2)
        assert (counts["all"].rows_in, counts["all"].rows_out, counts["each"].rows_out) == (3, 3, 5)
        assert (counts["kept"].rows_in, counts["kept"].passed, counts["kept"].filtered) == (5, 4, 1)


def test_running_aggregates_give_the_changed_rows_of_each_epoch(spark: SparkSession) -> None:
    job = (
        SOURCE
        + """
operators:
  once: {type: dedup, input: texts, by: [id], within: 1h}
  totals: {type: aggregate, input: once, key: {first: "left(words, 1)"}, aggregate: {n: count(), size: sum(size)}}
sinks:
  changes: {input: totals, files: {path: out, format: jsonl}}
  table: {input: totals, sqlite: {path: out.db, table: totals, key: [first]}}
"""
    )
    with Harness(job, spark) as test:
        test.epoch({"texts": [text("1", "a", 1, 1), text("2", "b", 2, 2), text("1", "a", 1, 1)]})
        test.restart()
        test.epoch({"texts": [text("3", "a", 10, 3), text("4", "c", 4, -3000), text("2", "b", 2, 2)]})
        changes = [(row["first"], row["n"], row["size"]) for row in test.rows("changes")]
        assert sorted(changes) == [("a", 1, 1), ("a", 2, 11), ("b", 1, 2), ("c", 1, 4)]
        assert sorted((row["first"], row["n"]) for row in test.rows("table")) == [("a", 2), ("b", 1), ("c", 1)]
        assert test.accounting().operators["totals"].rows_in == 4
        assert test.accounting().operators["once"].duplicates == 2


def test_a_window_that_emits_updates_shows_each_state_and_still_refuses_late_events(spark: SparkSession) -> None:
    job = (
        SOURCE
        + """
operators:
  live: {type: window, input: texts, key: [], window: {tumbling: 1m}, emit: on_update, aggregate: {n: count()}}
sinks:
  out: {input: live, files: {path: out, format: jsonl}}
  late: {input: live.late, files: {path: late, format: jsonl}}
"""
    )
    with Harness(job, spark) as test:
        test.epoch({"texts": [text("1", "a", 1, 1), text("2", "b", 2, 2)]})
        test.epoch({"texts": [text("3", "a", 1, 30), text("4", "b", 2, 70)]})
        test.epoch({"texts": [text("5", "late", 1, 40), text("6", "a", 1, 80)]})
        test.drain()
        shown = [((row["window_start"] - NOON).total_seconds(), row["n"]) for row in test.rows("out")]
        assert sorted(shown) == [(0.0, 2), (0.0, 3), (60.0, 1), (60.0, 2)]
        assert [row["id"] for row in test.rows("late")] == ["5"]


def test_windows_of_windows(spark: SparkSession) -> None:
    job = (
        SOURCE
        + """
operators:
  minutes: {type: window, input: texts, key: [words], window: {tumbling: 1m}, aggregate: {n: count()}}
  busy: {type: filter, input: minutes, where: "n > 1"}
  hours:
    type: window
    input: busy
    key: [words]
    window: {tumbling: 1h}
    aggregate: {minutes: count(), most: max(n), first: first(window_start)}
sinks:
  out: {input: hours, files: {path: out, format: jsonl}}
"""
    )
    with Harness(job, spark) as test:
        times = [0, 10, 59.999999, 60, 70, 130, 3599, 3599.9]
        for seconds in times:
            test.epoch({"texts": [text(str(seconds), "a", 1, seconds)]})
        test.drain()
        (row,) = test.rows("out")
        assert (row["minutes"], row["most"], row["first"]) == (3, 3, NOON)
        counts = test.accounting().operators
        assert (counts["minutes"].rows_out, counts["hours"].rows_in, counts["hours"].late) == (4, 3, 0)


def test_a_job_that_only_keeps_errors(spark: SparkSession) -> None:
    job = SOURCE + "sinks:\n  bad: {input: texts.errors, files: {path: bad, format: jsonl}}\n"
    with Harness(job, spark) as test:
        test.epoch({"texts": [text("1", "a", 1, 1), {"_raw": "garbage"}]})
        assert [row["_error_code"] for row in test.rows("bad")] == ["bad_json"]
        assert test.accounting().sources["texts"].accepted == 1
