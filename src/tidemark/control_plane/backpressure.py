"""Whether a job keeps up, from how its lag went: slope, time to catch up, and how many key groups it would take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.control_plane.jobs.observation import Sample
from tidemark.protocol.status import Backpressure, DriverStatus
from tidemark.slope import slope

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
class Recommendation:
    parallelism: int
    reason: str


def trend(history: Sequence[Sample]) -> Trend | None:
    """The least-squares slope over the last minute; None while there is too little to tell."""
    recent = [sample for sample in history if sample.at >= history[-1].at - WINDOW_SECONDS]
    if len(recent) < ENOUGH_SAMPLES or recent[-1].at - recent[0].at < ENOUGH_SECONDS:
        return None
    grows = slope([(sample.at - recent[0].at, sample.lag_events) for sample in recent])
    taken = max(recent[-1].events_in - recent[0].events_in, 0)
    return None if grows is None else Trend(grows, taken / (recent[-1].at - recent[0].at))


def judge(status: DriverStatus, seen: Trend | None) -> Backpressure:
    """The driver's own word, corrected by the trend as soon as there is one."""
    said = status.backpressure
    if seen is None or said.lag_events is None:
        return said
    lag_seconds = said.lag_events / seen.rate if seen.rate > 0 else None
    behind = lag_seconds is None or lag_seconds > WORTH_A_WORD_SECONDS
    if said.lag_events == 0 or not behind:
        return said.model_copy(update={"level": "none", "lag_seconds": lag_seconds or 0.0, "eta_seconds": 0.0})
    shrinks = seen.slope < -STEADY * max(seen.rate, 1.0)
    eta = said.lag_events / -seen.slope if shrinks else None
    level = "low" if shrinks else "high"
    return said.model_copy(update={"level": level, "lag_seconds": lag_seconds, "eta_seconds": eta})


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
