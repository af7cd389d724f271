"""What an epoch waits for: pure numbers."""

from __future__ import annotations

import pytest

from tidemark.data_plane.report.slowest_step import slowest_step

STEPS: tuple[tuple[int, dict[str, int], dict[str, float], str | None], ...] = (
    (1000, {"out": 800, "copy": 10}, {"per_minute": 0.1}, "out"),
    (1000, {"out": 800}, {"per_minute": 0.9, "orders": 0.2}, "per_minute"),
    (1000, {"out": 100}, {"per_minute": 0.1, "orders": 0.3}, "orders"),
    (1000, {}, {}, None),
)


@pytest.mark.parametrize(("epoch_ms", "sink_ms", "busy", "expected"), STEPS)
def test_the_slowest_step_is_what_the_epoch_waits_for(
    epoch_ms: int, sink_ms: dict[str, int], busy: dict[str, float], expected: str | None
) -> None:
    assert slowest_step(epoch_ms, sink_ms, busy) == expected
