"""The watermark of several: pure numbers and times."""

from __future__ import annotations

from datetime import UTC, datetime

from tidemark.watermarks import smallest_watermark


def test_the_smallest_counts() -> None:
    assert smallest_watermark([7, 3, 0]) == 0
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    assert smallest_watermark([late, early]) == early


def test_one_that_is_unknown_could_be_smaller_than_all() -> None:
    assert smallest_watermark([7, None, 3]) is None


def test_of_none_there_is_none() -> None:
    nobody: list[int] = []
    assert smallest_watermark(nobody) is None
