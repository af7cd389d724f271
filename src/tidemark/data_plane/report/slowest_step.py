"""What an epoch spends its time on. Whether that holds the job up is for the control plane to judge."""

from __future__ import annotations

from collections.abc import Mapping

# A sink that takes more than this share of an epoch is what the job waits for.
_WAITS_FOR_SINK = 0.5


def slowest_step(epoch_ms: int, sink_ms: Mapping[str, int], busy: Mapping[str, float]) -> str | None:
    """A sink that takes most of the epoch, else the busiest source or operator."""
    if sink_ms and sum(sink_ms.values()) > _WAITS_FOR_SINK * epoch_ms and not _computes(busy):
        return max(sink_ms, key=lambda sink: sink_ms[sink])
    return max(busy, key=lambda node: busy[node]) if busy else None


def _computes(busy: Mapping[str, float]) -> bool:
    """Whether the slots have work: rows reach a sink while they are computed, so its time alone does not tell."""
    return max(busy.values(), default=0.0) > _WAITS_FOR_SINK
