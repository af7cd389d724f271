"""Why a job's watermark is where it is: query → source → partition, what would release it, and who waits. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidemark.compiler.plan.plan import (
    ExecutionPlan,
    QueryPlan,
    SessionWindow,
    SlidingWindow,
    SourcePlan,
    TumblingWindow,
    WindowPlan,
    WindowSpec,
)
from tidemark.protocol.messages import PartitionStatus, SourceStatus
from tidemark.protocol.status import DriverStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Release:
    """What moves the watermark on: an event on the partition after that time, or its falling idle."""

    event_after: datetime | None
    idle_in_seconds: float | None
    words: str


@dataclass(frozen=True)
class WaitingWindow:
    """`open` is how many (key, window) pairs are open. It closes when its partition has an event of that time."""

    operator: str
    window_end: datetime | None
    open: int | None
    needs_event_at: datetime | None
    words: str


@dataclass(frozen=True)
class Chain:
    """One query. `source` and `partition` are what holds its watermark; None when nothing does."""

    query: str
    watermark: datetime | None
    source: str | None
    partition: int | None
    sources: dict[str, datetime | None]
    release: Release | None
    waiting: tuple[WaitingWindow, ...]
    words: str


def explain_watermark(plan: ExecutionPlan, status: DriverStatus) -> tuple[Chain, ...]:
    """One chain for every query, the one that is furthest behind first."""
    marks = {query.id: query.watermark for query in status.queries}
    chains = [_chain(plan, query, marks.get(query.id), status) for query in plan.queries]
    return tuple(sorted(chains, key=lambda chain: chain.watermark or _EPOCH))


def _chain(plan: ExecutionPlan, query: QueryPlan, mark: datetime | None, status: DriverStatus) -> Chain:
    known = {id_: status.sources[id_] for id_ in query.sources if id_ in status.sources}
    active = {id_: source for id_, source in known.items() if not source.idle}
    source = min(active, key=lambda id_: _order(active[id_].watermark), default=None)
    partition = _blocking(active[source]) if source else None
    release = _release(plan.sources[source], partition) if source and partition else None
    windows = tuple(_windows(plan, query, mark, status, plan.sources[source] if source else None))
    return Chain(
        query.id,
        mark,
        source,
        partition.partition if partition else None,
        {id_: each.watermark for id_, each in known.items()},
        release,
        windows,
        _words(query, mark, source, partition, release, known),
    )


def _order(mark: datetime | None) -> tuple[bool, datetime]:
    """A source or partition without a watermark yet holds all others."""
    return (mark is not None, mark or _EPOCH)


def _blocking(source: SourceStatus) -> PartitionStatus | None:
    active = [partition for partition in source.partitions if not partition.idle]
    return min(active, key=lambda partition: _order(partition.watermark), default=None)


def _release(source: SourcePlan, partition: PartitionStatus) -> Release:
    waiting = bool(partition.lag)
    left = max(source.watermark.idle_timeout_ms - partition.quiet_ms, 0) / 1000
    idle_in = None if waiting else left
    newest = partition.max_event_time
    event = f"an event after {_show(newest)}" if newest else "its first event"
    idle = "it still has events to read" if waiting else f"else it is idle in {left:.0f} s of quiet"
    return Release(newest, idle_in, f"{event} on {source.id}, partition {partition.partition}; {idle}")


def _windows(
    plan: ExecutionPlan, query: QueryPlan, mark: datetime | None, status: DriverStatus, source: SourcePlan | None
) -> Iterator[WaitingWindow]:
    delay = timedelta(milliseconds=source.watermark.delay_ms) if source else timedelta()
    for id_ in query.operators:
        operator = plan.operators[id_]
        if not isinstance(operator, WindowPlan):
            continue
        open_ = status.open_windows.get(id_)
        end = open_.earliest_end if open_ and open_.earliest_end else next_end(operator.window, mark)
        count = open_.rows if open_ else None
        needed = end + delay if end else None
        words = f"{id_}: {_counted(count)} open; {_closing(operator.window, end, needed)}"
        yield WaitingWindow(id_, end, count, needed, words)


def next_end(window: WindowSpec, mark: datetime | None) -> datetime | None:
    """The first end of a window after the watermark; None for sessions, whose ends depend on their events."""
    if mark is None or isinstance(window, SessionWindow):
        return None
    step = timedelta(milliseconds=window.size_ms if isinstance(window, TumblingWindow) else window.every_ms)
    first = _EPOCH + timedelta(milliseconds=window.offset_ms)
    if isinstance(window, SlidingWindow):
        first += timedelta(milliseconds=window.size_ms)
    return first + ((mark - first) // step + 1) * step


def _counted(count: int | None) -> str:
    return "windows" if count is None else "1 window" if count == 1 else f"{count} windows"


def _closing(window: WindowSpec, end: datetime | None, needed: datetime | None) -> str:
    if end is not None:
        return f"the next ends at {_show(end)} and closes with an event at {_show(needed)} or later"
    if isinstance(window, SessionWindow):
        return "the first closes when its key has been quiet for the gap"
    return "none closes before there is a watermark"


def _words(
    query: QueryPlan,
    mark: datetime | None,
    source: str | None,
    partition: PartitionStatus | None,
    release: Release | None,
    known: dict[str, SourceStatus],
) -> str:
    where = f"the watermark of query {query.id} is {_show(mark)}" if mark else f"query {query.id} has no watermark yet"
    if not known:
        return f"{where}: its driver has not said anything about its sources yet"
    if source is None or partition is None:
        return f"{where}: all its sources are idle, so it moves on with the clock"
    held = f"source {source}, partition {partition.partition} holds it"
    seen = f"(newest event {_show(partition.max_event_time)})" if partition.max_event_time else "(no event yet)"
    return f"{where}: {held} {seen}; {release.words if release else ''}"


def _show(moment: datetime | None) -> str:
    return (
        "none"
        if moment is None
        else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    )
