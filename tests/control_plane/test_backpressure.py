"""Lag as a trend: its slope, when it is gone, and what is advised."""

from __future__ import annotations

import pytest

from tidemark.control_plane.backpressure import Backpressure, Trend, judge, recommend, trend
from tidemark.control_plane.jobs.observation import Sample
from tidemark.protocol.status import DriverStatus, SinkStatus


def history(slope: float, rate: float, seconds: int = 60, lag: int = 10_000) -> list[Sample]:
    return [Sample(float(at), int(lag + slope * at), int(rate * at)) for at in range(seconds + 1)]


def status(lag: int | None, slowest: str | None = "per_min") -> DriverStatus:
    sinks = (SinkStatus(id="out", committed_epoch=1, rows=1),)
    return DriverStatus(state="RUNNING", lag_events=lag, slowest_step=slowest, sinks=sinks, parallelism=2)


@pytest.mark.parametrize("slope", [-50.0, 0.0, 120.0])
def test_slope_and_rate_come_out_of_the_history(slope: float) -> None:
    found = trend(history(slope, 1000))
    assert found is not None
    assert (round(found.slope), round(found.rate)) == (slope, 1000)


def test_only_the_last_minute_counts() -> None:
    early = [Sample(float(at), 100_000 - 1000 * at, 0) for at in range(60)]
    late = [Sample(60.0 + at, 40_000, 10 * at) for at in range(61)]
    found = trend([*early, *late])
    assert found is not None
    assert found.slope == 0


def test_too_little_says_nothing() -> None:
    assert trend(history(1, 1, seconds=3)) is None
    assert trend([Sample(0.0, 1, 1)]) is None


def test_a_lag_that_shrinks_has_an_end() -> None:
    assert judge(status(6000), Trend(slope=-100, rate=500)) == Backpressure("low", 6000, 12, 60, "per_min")


def test_a_lag_that_does_not_shrink_is_high() -> None:
    assert judge(status(6000), Trend(slope=1, rate=500)) == Backpressure("high", 6000, 12, None, "per_min")
    assert judge(status(6000), Trend(slope=0, rate=0)) == Backpressure("high", 6000, None, None, "per_min")


def test_a_lag_of_seconds_is_none() -> None:
    assert judge(status(100), Trend(slope=5, rate=500)) == Backpressure("none", 100, 0.2, 0.0)
    assert judge(status(0), Trend(slope=0, rate=0)) == Backpressure("none", 0, 0.0, 0.0)


def test_without_a_trend_only_the_lag_is_known() -> None:
    assert judge(status(6000), None) == Backpressure("none", 6000)
    assert judge(status(0), None) == Backpressure("none", 0, 0.0, 0.0)
    assert judge(status(None), None) == Backpressure()


def test_more_key_groups_are_advised_in_proportion_and_with_a_reason() -> None:
    trend_ = Trend(slope=500, rate=500)
    advice = recommend(status(60_000), trend_, judge(status(60_000), trend_), 2)
    assert advice is not None
    assert advice.parallelism == 4
    assert "1000 events arrive in a second and 500 are taken in with 2 key groups" in advice.reason


@pytest.mark.parametrize(("slope", "parallelism"), [(50_000, 8), (0, 3)])
def test_advice_is_bounded(slope: float, parallelism: int) -> None:
    trend_ = Trend(slope=slope, rate=500)
    advice = recommend(status(60_000), trend_, judge(status(60_000), trend_), 2)
    assert advice is not None
    assert advice.parallelism == parallelism


def test_a_slow_sink_is_not_helped_by_key_groups() -> None:
    trend_ = Trend(slope=500, rate=500)
    slow = status(60_000, slowest="out")
    advice = recommend(slow, trend_, judge(slow, trend_), 2)
    assert advice is not None
    assert (advice.parallelism, "the sink out is the slowest" in advice.reason) == (2, True)


def test_no_advice_while_it_keeps_up() -> None:
    trend_ = Trend(slope=-100, rate=500)
    assert recommend(status(6000), trend_, judge(status(6000), trend_), 2) is None
