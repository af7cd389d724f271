"""Whether a job keeps up, from how its lag went: slope, time to catch up, and how many key groups it would take.

The only place that judges: a driver tells how many events wait and what its epochs spend their time on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tidemark.control_plane.jobs.observation import Sample
from tidemark.protocol.status import DriverStatus

WINDOW_SECONDS = 60.0
ENOUGH_SAMPLES = 5
ENOUGH_SECONDS = 10.0
STEADY = 0.01  # of the rate: a slope below it is noise
WORTH_A_WORD_SECONDS = 5.0
MOST_AT_ONCE = 4
MOST_KEY_GROUPS = 1024
LEVELS = {"none": 0.0, "low": 0.5, "high": 1.0}


@dataclass(frozen=True)
class Trend:
    """Events per second: how fast the lag grows (or shrinks, when negative), and how many are taken in."""

    slope: float
    rate: float


@dataclass(frozen=True)
class Backpressure:
    """`level`: none, low (a backlog that shrinks), high (one that does not). `cause` is the id of the slowest step."""

    level: Literal["none", "low", "high"] = "none"
    lag_events: int | None = None
    lag_seconds: float | None = None
    eta_seconds: float | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Recommendation:
    parallelism: int
    reason: str


def trend(history: Sequence[Sample]) -> Trend | None:
    """The least-squares slope over the last minute; None while there is too little to tell."""
    recent = [sample for sample in history if sample.at >= history[-1].at - WINDOW_SECONDS]
    if len(recent) < ENOUGH_SAMPLES or recent[-1].at - recent[0].at < ENOUGH_SECONDS:
        return None
    grows = _slope([(sample.at - recent[0].at, sample.lag_events) for sample in recent])
    taken = max(recent[-1].events_in - recent[0].events_in, 0)
    return Trend(grows, taken / (recent[-1].at - recent[0].at))


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line through (time, value) by least squares; the times differ."""
    middle = sum(time for time, _ in points) / len(points)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((time - middle) ** 2 for time, _ in points)
    return sum((time - middle) * (value - mean) for time, value in points) / spread


def judge(status: DriverStatus, seen: Trend | None) -> Backpressure:
    """A lag of a few seconds is none; nor is one held against a job whose trend is not known yet."""
    lag = status.lag_events
    if not lag or seen is None:
        nothing_waits = 0.0 if lag == 0 else None
        return Backpressure("none", lag, nothing_waits, nothing_waits)
    lag_seconds = lag / seen.rate if seen.rate > 0 else None
    if lag_seconds is not None and lag_seconds <= WORTH_A_WORD_SECONDS:
        return Backpressure("none", lag, lag_seconds, 0.0)
    if seen.slope < -STEADY * max(seen.rate, 1.0):
        return Backpressure("low", lag, lag_seconds, lag / -seen.slope, status.slowest_step)
    return Backpressure("high", lag, lag_seconds, None, status.slowest_step)


def recommend(
    status: DriverStatus, seen: Trend | None, pressure: Backpressure, parallelism: int | None
) -> Recommendation | None:
    """More key groups when the lag grows and an operator is what holds the job up; else nothing, or why not."""
    current = parallelism or status.parallelism
    if seen is None or pressure.level != "high" or current is None or seen.rate <= 0:
        return None
    if pressure.cause in {sink.id for sink in status.sinks}:
        return Recommendation(current, f"the sink {pressure.cause} is the slowest step: more key groups do not help")
    if pressure.cause in status.sources:
        return Recommendation(current, f"the source {pressure.cause} is the slowest step: more key groups do not help")
    arriving = seen.rate + max(seen.slope, 0.0)
    wanted = max(math.ceil(current * arriving / seen.rate), current + 1)
    advised = min(wanted, current * MOST_AT_ONCE, MOST_KEY_GROUPS)
    return Recommendation(
        advised,
        f"{arriving:.0f} events arrive in a second and {seen.rate:.0f} are taken in with {current} key groups:"
        f" the lag of {pressure.lag_events} events does not shrink",
    )
