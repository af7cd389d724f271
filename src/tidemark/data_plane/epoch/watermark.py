"""Event time of one query: what each source partition has seen, who is idle, and the watermark that follows.

Pure: time comes in as microseconds of idle time and event time, never from a clock. Only `QueryWatermark.advance`
decides what the watermark is; it never moves back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.watermarks import smallest_watermark

# 9999-12-31T23:59:59Z: where a drained job's watermark ends.
END_OF_TIME = 253_402_300_799_000_000


@dataclass
class Partition:
    """`newest` is the largest event time seen; `quiet` the idle time since the last event, both in microseconds.

    A number that stands for no partition, because a source leaves it out, does not exist.
    """

    newest: int | None = None
    quiet: int = 0
    idle: bool = False
    exists: bool = True

    def saw(self, newest: int) -> None:
        self.newest = newest if self.newest is None else max(self.newest, newest)
        self.quiet = 0
        self.idle = False

    def waited(self, microseconds: int, timeout: int) -> None:
        self.quiet += microseconds
        self.idle = self.idle or self.quiet >= timeout


@dataclass
class SourceTime:
    """The partitions of one source and what its policy makes of them."""

    delay: int
    idle_timeout: int
    partitions: list[Partition]

    @property
    def idle(self) -> bool:
        return all(partition.idle for partition in self.partitions if partition.exists)

    @property
    def watermark(self) -> int | None:
        """The minimum over active partitions; None while one of them has no event yet, or none is active."""
        active = [partition for partition in self.partitions if partition.exists and not partition.idle]
        return smallest_watermark(self.partition_watermark(partition) for partition in active)

    def partition_watermark(self, partition: Partition) -> int | None:
        return None if partition.newest is None else partition.newest - self.delay


@dataclass
class QueryWatermark:
    """The watermark of one query: the minimum over its active sources, or the clock when all are idle."""

    sources: dict[str, SourceTime]
    value: int | None = None
    drained: bool = field(default=False)

    @classmethod
    def of(cls, sources: Iterable[tuple[SourcePlan, int]]) -> QueryWatermark:
        """From the plans of the query's sources, each with its number of partitions."""
        return cls(
            {
                plan.id: SourceTime(
                    plan.watermark.delay_ms * 1000,
                    plan.watermark.idle_timeout_ms * 1000,
                    [Partition() for _ in range(count)],
                )
                for plan, count in sources
            }
        )

    def saw(self, source: str, newest: Mapping[int, int]) -> None:
        """Takes in an epoch's largest event times, by partition."""
        for partition, value in newest.items():
            self.sources[source].partitions[partition].saw(value)

    def grow(self, source: str, partitions: int, present: Collection[int]) -> None:
        """Makes room for new partitions; each begins without an event and holds the watermark until it is idle."""
        known = self.sources[source].partitions
        known += [Partition() for _ in range(partitions - len(known))]
        for index, partition in enumerate(known):
            partition.exists = index in present

    def read(self, newest: Mapping[str, Mapping[int, int]], passed: Mapping[str, int]) -> None:
        """Takes in what an epoch read, and for each source in `passed` the time that went by with it.

        A partition of such a source that had nothing to read was idle that long beside others that had. An epoch
        without any event does not count: the moving watermark was its reason, and would be moved by it again.
        """
        for source, microseconds in passed.items():
            if any(newest.values()):
                self._leave_waiting(self.sources[source], microseconds, newest.get(source, {}))
        for source, times in newest.items():
            self.saw(source, times)

    def _leave_waiting(self, source: SourceTime, microseconds: int, heard: Collection[int]) -> None:
        for index, partition in enumerate(source.partitions):
            if index not in heard:
                partition.waited(microseconds, source.idle_timeout)

    def waited(self, microseconds: int) -> None:
        """Time went by in which the job ran, no epoch was in progress and nothing was unread."""
        for source in self.sources.values():
            for partition in source.partitions:
                partition.waited(microseconds, source.idle_timeout)

    def started(self) -> None:
        """A new start: idle time begins at zero, and nobody is idle."""
        for source in self.sources.values():
            for partition in source.partitions:
                partition.quiet, partition.idle = 0, False

    def drain(self) -> None:
        """The input is at its end: the watermark goes to the end of time."""
        self.drained = True

    def at_least(self, watermark: int) -> None:
        """An epoch was logged with this watermark: a replay must not fall behind it."""
        if watermark > (self.value or 0):
            self.value = watermark

    def would_move(self, change: Callable[[QueryWatermark], None]) -> bool:
        """Whether a change would move the watermark; nothing is changed."""
        trial = deepcopy(self)
        change(trial)
        return trial.advance() != self.value

    def advance(self) -> int | None:
        """Recomputes the watermark and returns it; it never moves back."""
        candidate = END_OF_TIME if self.drained else self._candidate()
        if candidate is not None and (self.value is None or candidate > self.value):
            self.value = candidate
        return self.value

    def _candidate(self) -> int | None:
        active = [source for source in self.sources.values() if not source.idle]
        if not active:
            return self._clock()
        return smallest_watermark(source.watermark for source in active)

    def _clock(self) -> int | None:
        """Where a quiet query would be by now: its newest event, moved on by the idle time since it was seen."""
        seen = [
            (partition.newest, -partition.quiet, source.delay)
            for source in self.sources.values()
            for partition in source.partitions
            if partition.newest is not None
        ]
        if not seen:
            return None
        newest, negative_quiet, delay = max(seen)
        return newest - negative_quiet - delay

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "drained": self.drained,
            "sources": {
                name: [[p.newest, p.quiet, p.idle] for p in source.partitions] for name, source in self.sources.items()
            },
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Takes over the state of an earlier epoch; partitions that are new since then start empty."""
        self.value = saved["value"]
        self.drained = saved["drained"]
        for name, partitions in saved["sources"].items():
            known = self.sources[name].partitions
            for index, (newest, quiet, idle) in enumerate(partitions):
                known[index] = Partition(newest, quiet, idle, known[index].exists)
