"""A drained job reads what was there when it started: neither more, nor without end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from data_plane.driving_jobs import Shop, plan_of, write_input
from pyspark.sql import SparkSession
from support.session_run import drained

from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.errors import NotFresh
from tidemark.protocol.message import Message
from tidemark.protocol.messages import EpochCommitted

pytestmark = pytest.mark.spark

TWO_QUERIES = """\
tidemark: 1
name: two
sources:
  busy:
    files: {path: busy, format: jsonl, max_files_per_epoch: 1}
    schema: &schema {store: string, t: timestamp(s)}
    event_time: t
  quiet: {files: {path: quiet, format: jsonl, max_files_per_epoch: 1}, schema: *schema, event_time: t}
operators:
  of_busy: {type: window, input: busy, window: {tumbling: 1m}, aggregate: {n: count()}}
  of_quiet: {type: window, input: quiet, window: {tumbling: 1m}, aggregate: {n: count()}}
sinks:
  a: {input: of_busy, files: {path: a, format: jsonl}}
  b: {input: of_quiet, files: {path: b, format: jsonl}}
"""


def test_what_arrives_while_a_job_drains_is_left_to_another_run(spark: SparkSession, tmp_path: Path) -> None:
    """Every epoch puts a file into the folder, so a job that reads on would never end."""
    write_input(tmp_path / "in", 3)
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path)

    def hear(message: Message) -> None:
        if isinstance(message, EpochCommitted):
            put_order(tmp_path / "in" / f"late-{message.epoch}.jsonl")

    assert drained(JobDriver(shop.spec(1), spark, hear)).total.sources["orders"].events_in == 27
    assert not any("s9" in row for rows in shop.contents().values() for row in rows)
    with pytest.raises(NotFresh):
        shop.drain(attempt=2)


def test_a_drain_that_was_cut_short_is_ended_by_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path / "in", 2)
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path)
    assert shop.drain(attempt=1) == "FINISHED"
    (tmp_path / "state" / "finished").unlink()
    assert JobDriver(shop.spec(2, drain=False), spark, lambda _: None).run().state == "FINISHED"
    (tmp_path / "state" / "finished").unlink()
    put_order(tmp_path / "in" / "new.jsonl")
    with pytest.raises(NotFresh):
        shop.drain(attempt=3)


def test_what_arrives_for_one_query_while_another_is_read_is_left_too(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path / "busy", 3)
    (tmp_path / "quiet").mkdir()

    def hear(message: Message) -> None:
        if isinstance(message, EpochCommitted):
            put_order(tmp_path / "quiet" / f"{message.query}-{message.epoch}.jsonl")

    shop = Shop(spark, compile_job(TWO_QUERIES).plan, tmp_path)
    total = drained(JobDriver(shop.spec(1), spark, hear)).total
    assert {source: counts.events_in for source, counts in total.sources.items()} == {"busy": 27}


def put_order(path: Path) -> None:
    path.write_text(json.dumps({"store": "s9", "t": 600}) + "\n")
