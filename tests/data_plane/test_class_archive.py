"""The archive of Spark's classes: used by every driver where there is one, and done without where there is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark import class_archive, java_classes, prepared


def test_java_takes_its_classes_from_the_archive_that_setup_made(spark: SparkSession) -> None:
    """Java unmaps an archive that does not fit, so one that is mapped is in use."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    assert str(class_archive.path()) in Path(f"/proc/{gateway.proc.pid}/maps").read_text()


def test_without_an_archive_java_is_told_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert class_archive.java_options() == []
    class_archive.path().parent.mkdir(parents=True)
    class_archive.path().touch()
    assert class_archive.java_options() == [f"-XX:SharedArchiveFile={class_archive.path()}"]


def test_an_archive_that_is_older_than_the_jar_before_spark_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    prepared.folder().mkdir(parents=True)
    for path in (class_archive.path(), java_classes.path()):
        path.touch()
    os.utime(class_archive.path(), (1_700_000_000, 1_700_000_000))
    assert class_archive.java_options() == []
    os.utime(java_classes.path(), (1_600_000_000, 1_600_000_000))
    assert class_archive.java_options()
