"""The death of Java is told as such, whatever call was under way."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from data_plane.driving_jobs import Shop, plan_of
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidemark.data_plane import job_driver
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.spark_internals import java_ends
from tidemark.errors import EngineFault


def test_a_process_that_is_just_dying_is_waited_for(spark: SparkSession) -> None:
    assert not java_ends(spark, 0.01)
    with subprocess.Popen(["sleep", "60"]) as process:
        session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))
        assert not java_ends(session, 0.01)
        process.kill()
        assert java_ends(session, 10)


@pytest.mark.parametrize(
    ("dies", "told"), [(True, "the Java process behind Spark is gone"), (False, "a call into Spark failed")]
)
def test_a_call_that_was_not_answered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool, told: str
) -> None:
    def start(self: JobDriver, frames: object, *, bounded: bool) -> None:
        raise Py4JError("An error occurred while calling o823.isActive")

    monkeypatch.setattr(JobDriver, "_start", start)
    monkeypatch.setattr(job_driver, "java_ends", lambda spark, seconds: dies)
    with pytest.raises(EngineFault) as caught:
        Shop(spark, plan_of(tmp_path / "in"), tmp_path).drain(1)
    assert caught.value.message == told
