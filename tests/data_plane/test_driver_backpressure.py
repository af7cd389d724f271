"""Whether a job keeps up, from its backlog: pure numbers."""

from __future__ import annotations

import pytest

from tidemark.data_plane.report.backpressure import LagTrend, backpressure, slowest_step
from tidemark.protocol.status import Backpressure


def trend(*seen: tuple[float, int]) -> LagTrend:
    trend = LagTrend()
    for now, lag in seen:
        trend.add(now, lag)
    return trend


def test_nothing_known_is_no_pressure() -> None:
    assert backpressure(LagTrend(), 0.0, 0, "x") == Backpressure()


def test_a_growing_backlog_is_high_and_has_no_end_in_sight() -> None:
    found = backpressure(trend((0, 1000), (10, 2000)), rate=300.0, epoch_events=100, cause="per_minute")
    assert found == Backpressure(level="high", lag_events=2000, lag_seconds=5.0, eta_seconds=None, cause="per_minute")


def test_a_shrinking_backlog_is_low_and_says_when_it_is_gone() -> None:
    found = backpressure(trend((0, 3000), (10, 1000)), rate=400.0, epoch_events=100, cause="per_minute")
    assert found == Backpressure(level="low", lag_events=1000, lag_seconds=5.0, eta_seconds=5.0, cause="per_minute")


def test_what_one_epoch_takes_is_no_backlog() -> None:
    found = backpressure(trend((0, 0), (1, 80)), rate=80.0, epoch_events=100, cause="per_minute")
    assert (found.level, found.cause) == ("none", None)


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    assert trend((0, 9999), (100, 10), (101, 11)).slope == pytest.approx(1.0)


CAUSES: tuple[tuple[int, dict[str, int], dict[str, float], str | None], ...] = (
    (1000, {"out": 800, "copy": 10}, {"per_minute": 0.1}, "out"),
    (1000, {"out": 800}, {"per_minute": 0.9, "orders": 0.2}, "per_minute"),
    (1000, {"out": 100}, {"per_minute": 0.1, "orders": 0.3}, "orders"),
    (1000, {}, {}, None),
)


@pytest.mark.parametrize(("epoch_ms", "sink_ms", "busy", "expected"), CAUSES)
def test_the_cause_is_what_the_epoch_waits_for(
    epoch_ms: int, sink_ms: dict[str, int], busy: dict[str, float], expected: str | None
) -> None:
    assert slowest_step(epoch_ms, sink_ms, busy) == expected
