"""An independent account of what event time means: plain Python over plain events, nothing of the engine.

Times are whole milliseconds since 1970. `Oracle` is fed the same epochs as a job and says which events are bad,
which are late for what, and what the windows hold in the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

END_OF_TIME = 253_402_300_799_000
Window = tuple[int, int]


@dataclass(frozen=True)
class Event:
    """One record. `bad` ones cannot be read; `future` ones are far ahead of the clock."""

    id: str
    time: int
    key: str
    value: float
    partition: int = 0
    bad: bool = False
    future: bool = False


@dataclass
class Clock:
    """The watermark of one source with one query on it."""

    partitions: int
    delay: int
    idle_timeout: int
    newest: dict[int, int] = field(default_factory=dict)
    quiet: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    mark: int = 0

    def saw(self, events: Iterable[Event]) -> None:
        for event in events:
            self.newest[event.partition] = max(self.newest.get(event.partition, event.time), event.time)
            self.quiet[event.partition] = 0
        self._move()

    def waited(self, milliseconds: int) -> None:
        for partition in range(self.partitions):
            self.quiet[partition] += milliseconds
        self._move()

    def _move(self) -> None:
        active = [p for p in range(self.partitions) if self.quiet[p] < self.idle_timeout]
        if not active:
            if self.newest:
                latest = max(self.newest.values())
                passed = min(self.quiet[p] for p, time in self.newest.items() if time == latest)
                self.mark = max(self.mark, latest + passed - self.delay)
        elif all(p in self.newest for p in active):
            self.mark = max(self.mark, min(self.newest[p] for p in active) - self.delay)


def tumbling(size: int, offset: int = 0) -> Callable[[int], list[Window]]:
    return sliding(size, size, offset)


def sliding(size: int, every: int, offset: int = 0) -> Callable[[int], list[Window]]:
    def windows(time: int) -> list[Window]:
        last = (time - offset) // every * every + offset
        starts = range(last, last - size, -every)
        return [(start, start + size) for start in starts if start <= time < start + size]

    return windows


@dataclass
class WindowOracle:
    """Tumbling and sliding windows: an assignment is late when its window's end has been reached."""

    windows: Callable[[int], list[Window]]
    kept: dict[tuple[str, Window], list[Event]] = field(default_factory=lambda: defaultdict(list))
    late: list[tuple[str, Window]] = field(default_factory=list)
    arrived: int = 0

    def take(self, event: Event, mark: int) -> None:
        for window in self.windows(event.time):
            self.arrived += 1
            if window[1] <= mark:
                self.late.append((event.id, window))
            else:
                self.kept[event.key, window].append(event)

    def results(self) -> dict[tuple[str, Window], list[Event]]:
        return dict(self.kept)


@dataclass
class SessionOracle:
    """Sessions: an event is late when its own window, one gap long, has been passed."""

    gap: int
    kept: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    closed: dict[str, list[list[Event]]] = field(default_factory=lambda: defaultdict(list))
    late: list[tuple[str, Window]] = field(default_factory=list)
    arrived: int = 0

    def take(self, event: Event, mark: int) -> None:
        self.arrived += 1
        own = (event.time, event.time + self.gap)
        if own[1] <= mark:
            self.late.append((event.id, own))
        else:
            self.kept[event.key].append(event)

    def close(self, mark: int) -> None:
        """Sessions that end by now are done: a later event begins a new one."""
        for key, events in self.kept.items():
            sessions = self._sessions(events)
            done = [session for session in sessions if session[-1].time + self.gap <= mark]
            self.closed[key].extend(done)
            self.kept[key] = [event for session in sessions if session not in done for event in session]

    def _sessions(self, events: list[Event]) -> list[list[Event]]:
        sessions: list[list[Event]] = []
        for event in sorted(events, key=lambda event: event.time):
            if sessions and event.time <= sessions[-1][-1].time + self.gap:
                sessions[-1].append(event)
            else:
                sessions.append([event])
        return sessions

    def results(self) -> dict[tuple[str, Window], list[Event]]:
        self.close(END_OF_TIME)
        return {
            (key, (session[0].time, session[-1].time + self.gap)): session
            for key, sessions in self.closed.items()
            for session in sessions
        }


@dataclass
class DedupOracle:
    """Keeps the first of equal events less than `within` apart; those of one epoch are taken in order of time."""

    within: int
    kept: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    duplicates: int = 0
    late: list[str] = field(default_factory=list)

    def take(self, events: Iterable[Event], mark: int) -> list[Event]:
        passed = []
        for event in sorted(events, key=lambda event: (event.time, event.id)):
            if event.time + self.within <= mark:
                self.late.append(event.id)
            elif any(abs(event.time - time) < self.within for time in self.kept[event.id]):
                self.duplicates += 1
            else:
                self.kept[event.id].append(event.time)
                passed.append(event)
        return passed
