"""The items of a test in rounds: what each source gives in one epoch, then what happens at its end.

The k-th part of every source's list, up to its k-th control item, belongs to round k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from tidemark.compiler.definition.case import AdvanceTime, AdvanceWatermark, CaseDefinition, Crash, Event, Item
from tidemark.compiler.definition.model import milliseconds


@dataclass(frozen=True)
class Round:
    """One epoch by source, then: watermarks by source, idle time (for all sources alike), a crash."""

    events: Mapping[str, list[Mapping[str, Any]]]
    watermarks: Mapping[str, str] = field(default_factory=dict)
    idle_ms: int = 0
    crash: bool = False


def rounds_of(case: CaseDefinition) -> list[Round]:
    parts = [[(source, *part) for part in _parts(case.items(source))] for source in case.input]
    return [_round([part for part in together if part is not None]) for together in zip_longest(*parts)]


def _parts(items: tuple[Item, ...]) -> Iterator[tuple[list[Mapping[str, Any]], Item | None]]:
    """The events up to each control item, with that item; what follows the last one has none."""
    events: list[Mapping[str, Any]] = []
    for item in items:
        if isinstance(item, Event):
            events.append(item.values)
        else:
            yield events, item
            events = []
    if events:
        yield events, None


def _round(parts: list[tuple[str, list[Mapping[str, Any]], Item | None]]) -> Round:
    ends = {source: end for source, _, end in parts}
    return Round(
        events={source: events for source, events, _ in parts},
        watermarks={source: end.to for source, end in ends.items() if isinstance(end, AdvanceWatermark)},
        idle_ms=max((milliseconds(end.by) for end in ends.values() if isinstance(end, AdvanceTime)), default=0),
        crash=any(isinstance(end, Crash) for end in ends.values()),
    )
