"""Executors that are lost are told of, once each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.sql import SparkSession

from tidemark.data_plane.report.executors import ExecutorWatch
from tidemark.data_plane.spark_internals import LostExecutor, lost_executors
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Warned

FIRST = LostExecutor("0", "127.0.0.1:4040", "worker lost")
SECOND = LostExecutor("3", "127.0.0.1:4041", "")


def session(master: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master))


def test_each_loss_is_told_once() -> None:
    told: list[Message] = []
    known: list[LostExecutor] = []
    watch = ExecutorWatch(session("spark://127.0.0.1:7077"), told.append, lambda spark: list(known))
    watch.look()
    assert told == []
    for lost in (FIRST, SECOND):
        known.append(lost)
        watch.look()
        watch.look()
    messages = [each.message for each in told if isinstance(each, Warned) and each.code == "executor_lost"]
    assert messages == [
        "executor 0 at 127.0.0.1:4040 was lost, and Spark runs its tasks elsewhere: worker lost",
        "executor 3 at 127.0.0.1:4041 was lost, and Spark runs its tasks elsewhere",
    ]


def test_a_driver_that_runs_its_own_tasks_has_none_to_lose() -> None:
    told: list[Message] = []
    ExecutorWatch(session("local[*,4]"), told.append, lambda spark: [FIRST]).look()
    assert told == []


def test_a_session_that_lost_none_says_so(spark: SparkSession) -> None:
    assert lost_executors(spark) == []
