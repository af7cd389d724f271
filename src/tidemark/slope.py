"""How fast a number grows: the slope of the line through what was seen of it."""

from __future__ import annotations

from collections.abc import Sequence


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """By least squares over (time, value); None where the times do not differ."""
    if not points:
        return None
    middle = sum(time for time, _ in points) / len(points)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((time - middle) ** 2 for time, _ in points)
    return sum((time - middle) * (value - mean) for time, value in points) / spread if spread else None
