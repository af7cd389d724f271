"""A quiet query runs its last epoch again, after a start, so that windows can close. Nothing else waits for it."""

from __future__ import annotations

import json
import threading
import time
from itertools import count
from pathlib import Path

import pytest
from data_plane.driving_jobs import Shop, plan_of, write_input
from pyspark.sql import DataFrame, SparkSession

from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.query_driver import QueryDriver
from tidemark.data_plane.spark_internals import EpochFacts

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]
LONG = 10**12


def test_input_that_comes_without_end_is_not_waited_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_input(tmp_path / "in", 1)
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path)
    # The epoch after the one with the orders has nothing to read.
    assert shop.run_until(epoch=1, attempt=1) == "STOPPED"
    repeating, enough = threading.Event(), threading.Event()
    repeat = QueryDriver._repeat

    def noted(self: QueryDriver, frame: DataFrame, facts: EpochFacts) -> None:
        repeating.set()
        repeat(self, frame, facts)

    monkeypatch.setattr(QueryDriver, "_repeat", noted)
    feeder = threading.Thread(target=feed, args=(tmp_path, repeating, enough))
    feeder.start()
    driver = JobDriver(shop.spec(2, drain=False), spark, lambda _: None)
    driver.start()
    (query,) = driver.queries
    try:
        query.move(lambda watermark: watermark.waited(LONG))
        assert repeating.is_set()
        assert feeder.is_alive()
    finally:
        enough.set()
        repeating.set()
        feeder.join()
        query.stop(time.monotonic() + 30)


def feed(folder: Path, begin: threading.Event, enough: threading.Event) -> None:
    """A file after the other, much faster than epochs take them."""
    begin.wait()
    for number in count():
        if enough.wait(0.02):
            return
        staged = folder / f".{number}"
        staged.write_text(json.dumps({"store": "s1", "t": 600 + number}) + "\n")
        staged.rename(folder / "in" / f"more-{number}.jsonl")
