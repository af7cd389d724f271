"""The last status of a job that stopped names the epochs that it holds, whatever signals came too late."""

from __future__ import annotations

from pathlib import Path

import pytest
from data_plane.moving_jobs import MovingJob
from faults import workload
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidemark.data_plane.job_driver import JobDriver
from tidemark.generations import Generations


def test_epochs_that_spark_has_not_told_of_are_in_the_last_status(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload.prepare(tmp_path)
    job = MovingJob(spark, tmp_path / "in", tmp_path / "job")
    hear, untold = JobDriver.on_committed, set[str]()

    def hear_the_first(driver: JobDriver, done: StreamingQueryProgress) -> None:
        if done.batchId == 0:
            hear(driver, done)
            return
        untold.add(str(done.id))
        if len(untold) == len(workload.QUERIES):
            driver.ask_stop()

    monkeypatch.setattr(JobDriver, "on_committed", hear_the_first)
    job.attempt = 1
    driver = JobDriver(job.spec(), spark, lambda message: None)
    driver.run()
    commits = {query: Generations(tmp_path / "job" / "state").current / query / "commits" for query in workload.QUERIES}
    held = {query: max(int(entry.name) for entry in folder.glob("[0-9]*")) for query, folder in commits.items()}
    assert {query.id: query.epoch for query in driver.status.queries} == held
