"""Whether a job keeps up, from how its backlog changed lately. Pure: time and counts come in as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.protocol.status import Backpressure
from tidemark.slope import slope

_MEMORY_SECONDS = 60.0
# A sink that takes more than this share of an epoch is what the job waits for.
_WAITS_FOR_SINK = 0.5


@dataclass
class LagTrend:
    """Backlogs of the last minute, each with its time in seconds."""

    seen: list[tuple[float, int]] = field(default_factory=list)

    def add(self, now: float, lag: int) -> None:
        self.seen = [item for item in self.seen if item[0] > now - _MEMORY_SECONDS]
        self.seen.append((now, lag))

    @property
    def slope(self) -> float | None:
        """Events a second by which the backlog grows; None for fewer than two moments."""
        return slope(self.seen)


def backpressure(trend: LagTrend, rate: float, epoch_events: int, cause: str | None) -> Backpressure:
    """`rate` is events processed a second. No more than one epoch's worth of backlog is no backlog."""
    if not trend.seen:
        return Backpressure()
    lag, slope = trend.seen[-1][1], trend.slope or 0.0
    arriving = rate + slope
    behind = lag > max(epoch_events, 0)
    return Backpressure(
        level=("low" if slope < 0 else "high") if behind else "none",
        lag_events=lag,
        lag_seconds=round(lag / arriving, 3) if lag and arriving > 0 else (0.0 if not lag else None),
        eta_seconds=round(lag / -slope, 3) if lag and slope < 0 else (0.0 if not lag else None),
        cause=cause if behind else None,
    )


def slowest_step(epoch_ms: int, sink_ms: Mapping[str, int], busy: Mapping[str, float]) -> str | None:
    """What an epoch spends its time on: a sink that takes most of it, else the busiest source or operator."""
    if sink_ms and sum(sink_ms.values()) > _WAITS_FOR_SINK * epoch_ms and not _computes(busy):
        return max(sink_ms, key=lambda sink: sink_ms[sink])
    return max(busy, key=lambda node: busy[node]) if busy else None


def _computes(busy: Mapping[str, float]) -> bool:
    """Whether the slots have work: rows reach a sink while they are computed, so its time alone does not tell."""
    return max(busy.values(), default=0.0) > _WAITS_FOR_SINK
