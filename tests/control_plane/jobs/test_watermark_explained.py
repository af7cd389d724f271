"""Why nothing comes out, from a plan and a status: the holder is named, and what would release it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.plan import SessionWindow, SlidingWindow, TumblingWindow
from tidemark.control_plane.jobs.watermark import Chain, explain_watermark, next_end
from tidemark.protocol.messages import PartitionStatus, SourceStatus
from tidemark.protocol.status import DriverStatus, QueryStatus

T = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = compile_job("""\
tidemark: 1
name: two
sources:
  a: {generator: {rate: 1, columns: {n: n}}, schema: {n: long}, watermark: {delay: 5s, idle_timeout: 30s}}
  b: {generator: {rate: 1, columns: {n: n}}, schema: {n: long}, watermark: {delay: 2s, idle_timeout: 10s}}
operators:
  both: {type: union, inputs: [a, b]}
  per_min: {type: window, input: both, key: [n], window: {tumbling: 1m}, aggregate: {c: count()}}
sinks:
  out: {input: per_min, console: {}}
""").plan


def partition(number: int, newest: int | None, **fields: Any) -> PartitionStatus:
    mark = None if newest is None else T + timedelta(seconds=newest)
    defaults: dict[str, Any] = {"idle": False, "quiet_ms": 0}
    return PartitionStatus(partition=number, watermark=mark, max_event_time=mark, **(defaults | fields))


def explained(a: list[PartitionStatus], b: list[PartitionStatus], mark: int | None = 30) -> Chain:
    def source(parts: list[PartitionStatus]) -> SourceStatus:
        known = [part.watermark for part in parts if part.watermark and not part.idle]
        return SourceStatus(
            watermark=min(known, default=None), idle=all(part.idle for part in parts), partitions=tuple(parts)
        )

    watermark = None if mark is None else T + timedelta(seconds=mark)
    query = QueryStatus(id="per_min", epoch=1, watermark=watermark)
    status = DriverStatus(state="RUNNING", queries=(query,), sources={"a": source(a), "b": source(b)})
    (chain,) = explain_watermark(PLAN, status)
    return chain


def test_the_partition_furthest_behind_holds_it() -> None:
    chain = explained([partition(0, 50), partition(1, 30, quiet_ms=12_000, lag=0)], [partition(0, 40)])
    assert (chain.source, chain.partition) == ("a", 1)
    assert chain.release is not None
    assert chain.release.event_after == T + timedelta(seconds=30)
    assert chain.release.idle_in_seconds == 18
    assert "source a, partition 1 holds it" in chain.words
    assert "2026-01-01T00:00:30Z" in chain.words


def test_a_partition_without_events_holds_it_until_it_is_idle() -> None:
    chain = explained([partition(0, 50)], [partition(0, 40), partition(1, None, quiet_ms=4_000)], mark=None)
    assert (chain.source, chain.partition) == ("b", 1)
    assert chain.release is not None
    assert (chain.release.event_after, chain.release.idle_in_seconds) == (None, 6)
    assert "its first event" in chain.release.words
    assert "no watermark yet" in chain.words


def test_a_partition_with_unread_events_does_not_fall_idle() -> None:
    chain = explained([partition(0, 30, lag=8, quiet_ms=9_000)], [partition(0, 40)])
    assert chain.release is not None
    assert chain.release.idle_in_seconds is None
    assert "still has events to read" in chain.release.words


def test_idle_partitions_and_sources_hold_nothing() -> None:
    chain = explained([partition(0, 10, idle=True), partition(1, 50)], [partition(0, 5, idle=True)])
    assert (chain.source, chain.partition) == ("a", 1)
    quiet = explained([partition(0, 10, idle=True)], [partition(0, 5, idle=True)])
    assert (quiet.source, quiet.release) == (None, None)
    assert "all its sources are idle" in quiet.words


def test_the_window_that_waits_says_which_event_would_close_it() -> None:
    (window,) = explained([partition(0, 30)], [partition(0, 40)]).waiting
    assert window.window_end == T + timedelta(seconds=60)
    assert window.needs_event_at == T + timedelta(seconds=65)


@pytest.mark.parametrize(
    ("window", "mark", "expected"),
    [
        (TumblingWindow(size_ms=60_000), 0, 60),
        (TumblingWindow(size_ms=60_000), 59.9, 60),
        (TumblingWindow(size_ms=60_000), 60, 120),
        (TumblingWindow(size_ms=60_000, offset_ms=15_000), 10, 15),
        (SlidingWindow(size_ms=60_000, every_ms=20_000), 10, 20),
        (SlidingWindow(size_ms=50_000, every_ms=20_000), 0, 10),
    ],
)
def test_the_next_end_of_a_window(window: TumblingWindow | SlidingWindow, mark: float, expected: int) -> None:
    assert next_end(window, T + timedelta(seconds=mark)) == T + timedelta(seconds=expected)


def test_sessions_end_with_their_events() -> None:
    assert next_end(SessionWindow(gap_ms=1000), T) is None
    assert next_end(TumblingWindow(size_ms=1000), None) is None
