"""How watermarks come together, for every plane that has several: of partitions, of sources, of queries.

What a watermark is, and when it moves, is the data plane's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

Mark = TypeVar("Mark", int, datetime)


def smallest_watermark(marks: Iterable[Mark | None]) -> Mark | None:
    """None while one of them is unknown, since it could be smaller than all others; and of none at all."""
    known: list[Mark] = []
    for mark in marks:
        if mark is None:
            return None
        known.append(mark)
    return min(known, default=None)
