"""Tells of executors that a cluster loses. Spark heals the loss; people want to know why an epoch took long."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from tidemark.data_plane.spark_internals import LostExecutor, lost_executors
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Warned

EXECUTOR_LOST = "executor_lost"


class ExecutorWatch:
    """Tells of each loss once. A driver that runs its tasks itself has no executors to lose."""

    def __init__(
        self,
        spark: SparkSession,
        send: Callable[[Message], None],
        lost: Callable[[SparkSession], list[LostExecutor]] = lost_executors,
    ) -> None:
        self._spark = spark
        self._send = send
        self._lost = lost
        self._has_executors = not (spark.sparkContext.master or "local").startswith("local")
        self._told: set[str] = set()

    def look(self) -> None:
        if not self._has_executors:
            return
        for executor in self._lost(self._spark):
            if executor.id not in self._told:
                self._told.add(executor.id)
                self._send(Warned(code=EXECUTOR_LOST, message=_words(executor)))


def _words(executor: LostExecutor) -> str:
    reason = f": {executor.reason}" if executor.reason else ""
    return f"executor {executor.id} at {executor.address} was lost, and Spark runs its tasks elsewhere{reason}"
