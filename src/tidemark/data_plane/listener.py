"""Spark's signals about its queries, handed on to the job they belong to."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)


class Job(Protocol):
    """Called on a thread of Spark's own."""

    def on_committed(self, done: StreamingQueryProgress) -> None: ...

    def on_idle(self, query_id: str) -> None: ...

    def on_terminated(self) -> None: ...


class SparkSignals(StreamingQueryListener):
    """Hands Spark's signals on, on Spark's own thread."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._job.on_committed(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        self._job.on_idle(str(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._job.on_terminated()
