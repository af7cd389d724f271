"""A drained job reads what was there when it started: neither more, nor without end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from data_plane.driving_jobs import Shop, plan_of, write_input
from pyspark.sql import SparkSession
from support.session_run import drained

from tidemark.data_plane.job_driver import JobDriver
from tidemark.errors import NotFresh
from tidemark.protocol.message import Message
from tidemark.protocol.messages import EpochCommitted

pytestmark = pytest.mark.spark


def test_what_arrives_while_a_job_drains_is_left_to_another_run(spark: SparkSession, tmp_path: Path) -> None:
    """Every epoch puts a file into the folder, so a job that reads on would never end."""
    write_input(tmp_path / "in", 3)
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path)

    def hear(message: Message) -> None:
        if isinstance(message, EpochCommitted):
            (tmp_path / "in" / f"late-{message.epoch}.jsonl").write_text(json.dumps({"store": "s9", "t": 600}) + "\n")

    assert drained(JobDriver(shop.spec(1), spark, hear)).total.sources["orders"].events_in == 27
    assert not any("s9" in row for rows in shop.contents().values() for row in rows)
    with pytest.raises(NotFresh):
        shop.drain(attempt=2)
