"""The harness drives a real job: epochs, watermarks, idle time, restarts, and jobs that fail."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tidemark import Job
from tidemark.errors import TooManyErrors, UsageError
from tidemark.testing.harness import Harness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PER_MINUTE = """\
tidemark: 1
name: visits
sources:
  visits:
    files: {path: in, format: jsonl, partition: lane, partitions: 2}
    schema: {id: string, page: string, lane: int, ts: timestamp}
    event_id: id
    event_time: ts
    watermark: {delay: 5s, idle_timeout: 30s}
operators:
  per_min: {type: window, input: visits, key: [page], window: {tumbling: 1m}, aggregate: {visits: count()}}
  named: {type: filter, input: visits, where: "page <> ''"}
sinks:
  out: {input: per_min, sqlite: {path: o, table: t, key: [page, window_start]}}
  late: {input: per_min.late, files: {path: late, format: jsonl}}
  all: {input: named, files: {path: all, format: jsonl}}
  bad: {input: visits.errors, files: {path: bad, format: jsonl}}
"""


def visit(id_: str, time: str, *, page: str = "home", lane: int = 0) -> dict[str, Any]:
    return {"id": id_, "page": page, "lane": lane, "ts": f"2026-01-01T{time}Z"}


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{time}").replace(tzinfo=UTC)


def test_time_moves_only_when_told_and_nothing_real_is_touched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Harness(PER_MINUTE, spark) as test:
        test.epoch({"visits": [visit("a", "00:00:10"), visit("b", "00:02:00")]})
        assert test.watermark() is None, "lane 1 has no event yet and holds the watermark"
        test.advance_time(29.9)
        assert test.watermark() is None
        test.advance_time(0.1)
        assert test.watermark("per_min") == at("00:02:25"), "all are quiet: the clock moves it on"
        assert [(row["window_start"], row["visits"]) for row in test.rows("out")] == [(at("00:00:00"), 1)]

        test.epoch({"visits": [visit("c", "00:03:00", lane=1), visit("d", "00:00:30"), {"_raw": b"\xff"}, {"id": "e"}]})
        assert [row["id"] for row in test.rows("late")] == ["d"]
        assert {row["_error_code"] for row in test.rows("bad")} == {"invalid_utf8", "missing_event_time"}
        test.advance_watermark("visits", "2026-01-01T00:04:00Z")
        assert test.watermark() == at("00:04:00")
        assert len(test.rows("out")) == 3

        total = test.accounting()
        assert total.sources["visits"].model_dump() == {"events_in": 6, "accepted": 4, "errors": 2}
        assert total.operators["per_min"].late == 1
        assert sorted(row["id"] for row in test.rows("all")) == ["a", "b", "c", "d"]
    assert list(tmp_path.iterdir()) == []
    assert not spark.streams.active


def test_a_restart_goes_on_from_the_state_and_begins_idle_time_anew(spark: SparkSession) -> None:
    with Harness(PER_MINUTE, spark, parallelism=1) as test:
        test.epoch({"visits": [visit("a", "00:00:10"), visit("b", "00:00:20", lane=1)]})
        test.advance_time(29)
        test.restart()
        test.advance_time(29)
        assert test.watermark() == at("00:00:05")
        test.epoch({"visits": [visit("c", "00:00:30", lane=1)]})
        test.drain()
        assert [row["visits"] for row in test.rows("out")] == [3]
        assert len(test.rows("all")) == 3
        assert test.accounting().sources["visits"].accepted == 3


def test_values_come_back_typed(spark: SparkSession) -> None:
    job = Job("types")
    columns = {
        "s": "string", "n": "long", "x": "double", "d": "date", "b": "binary", "m": "decimal(10,2)",
        "t": "timestamp(ms)", "l": "array<timestamp>", "o": "struct<a:int,m:map<string,long>>", "value": "boolean",
    }  # fmt: skip
    source = job.source("events", files={"path": "in", "format": "jsonl"}, schema=columns, event_time="t")
    source.map("same", drop=["x"]).sink("out", console={})
    event = {
        "s": "line\nfeed", "n": 2**62, "d": date(2026, 1, 2), "b": b"\x00\xff", "m": Decimal("1.50"),
        "t": 1_767_225_600_123, "l": [datetime(2026, 1, 1, 1, tzinfo=UTC), None], "o": {"a": 1, "m": {"k": 2}},
        "value": True,
    }  # fmt: skip
    with Harness(job, spark) as test:
        test.epoch({"events": [event]})
        assert test.rows("out") == [{**event, "t": datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)}]


def test_sources_of_one_query_come_in_the_same_epoch_and_record_fields_are_kept(spark: SparkSession) -> None:
    job = Job.from_yaml(
        dedent("""\
        tidemark: 1
        name: both
        sources:
          a: {generator: {count: 9, partitions: 3, columns: {k: "cast(n as string)"}}}
          b: {generator: {count: 9, columns: {k: "cast(n as string)"}}}
        operators:
          both: {type: union, inputs: [a, b]}
          whence: {type: map, input: both, set: {source: _source, id: _event_id, at: _event_time, lane: _partition}}
        sinks: {out: {input: whence, sqlite: {path: x, table: t, key: [k]}}}
        """)
    )
    first, second = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
    with Harness(job, spark) as test:
        test.epoch({"a": [{"k": "x", "_partition": 2, "_event_time": second}], "b": [{"k": "x", "_event_time": first}]})
        assert test.rows("out") == [{"k": "x", "source": "a", "id": "a/2/0", "at": at("00:00:02"), "lane": 2}]
        test.epoch(
            {"a": [{"k": "y", "_partition": 2, "_event_time": second}], "b": [{"k": "y", "_event_time": second}]}
        )
        newest = next(row for row in test.rows("out") if row["k"] == "y")
        assert newest["id"] == "b/0/1", "of equal times the larger id is the last"
        assert test.accounting().sinks["out"].rows == 4
        with pytest.raises(UsageError, match="no partition 3"):
            test.epoch({"a": [{"k": "z", "_partition": 3}]})


def test_a_job_that_fails_says_why_and_leaves_nothing_running(spark: SparkSession) -> None:
    job = PER_MINUTE.replace("    event_id: id\n", "    event_id: id\n    on_error: fail\n")
    with Harness(job, spark) as test, pytest.raises(TooManyErrors, match="source visits: 1 of 1 records"):
        test.epoch({"visits": [{"_raw": "{"}]})
    assert not spark.streams.active


def test_windows_close_after_a_restart_without_new_events(spark: SparkSession) -> None:
    with Harness(PER_MINUTE, spark) as test:
        test.epoch({"visits": [visit("a", "00:00:10"), visit("b", "00:00:20", lane=1)]})
        test.restart()
        test.drain()
        assert [row["visits"] for row in test.rows("out")] == [2]
