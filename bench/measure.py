"""Measures Spark queries that do the same in turns, and reports each against the first: medians, rounds and spread.

Throughput is events over the time that Spark reports for the epochs with data, from planning to commit: start-up and
the closing of the last windows are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

_REPORT_SECONDS = 30.0


class Epochs(StreamingQueryListener):
    """Adds up what Spark reports of the epochs with more than `smallest` events."""

    def __init__(self, smallest: int) -> None:
        self.events = 0
        self.seconds = 0.0
        self._smallest = smallest

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if event.progress.numInputRows > self._smallest:
            self.seconds += event.progress.durationMs["triggerExecution"] / 1000
            self.events += event.progress.numInputRows

    def onQueryIdle(self, event: QueryIdleEvent) -> None: ...

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...


@contextmanager
def timed(spark: SparkSession, events: int, smallest: int = 0) -> Iterator[Epochs]:
    """Listens until every event has been reported; Spark reports an epoch a little after it is done."""
    epochs = Epochs(smallest)
    spark.streams.addListener(epochs)
    yield epochs
    deadline = time.monotonic() + _REPORT_SECONDS
    while epochs.events < events and time.monotonic() < deadline:
        time.sleep(0.01)
    spark.streams.removeListener(epochs)
    assert epochs.events == events, f"{epochs.events} of {events} events were reported"


@dataclass
class Rounds:
    """The seconds that each way took for the same number of events, round by round; the first round warms up."""

    events: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, round_: int, **ways: Epochs) -> None:
        if round_:
            for name, epochs in ways.items():
                self.seconds.setdefault(name, []).append(epochs.seconds)

    def median(self, way: str) -> float:
        return statistics.median(self.seconds[way])

    def ratio(self, way: str, to: str) -> float:
        """The throughput of one way over that of another."""
        return self.median(to) / self.median(way)

    def report(self) -> None:
        for name, values in self.seconds.items():
            spread = (max(values) - min(values)) / self.median(name)
            rounds = ", ".join(f"{self.events / value:,.0f}" for value in values)
            median = self.events / self.median(name)
            print(f"{name:16} {median:>10,.0f} events/s  (rounds: {rounds}; spread {spread:.0%})")
