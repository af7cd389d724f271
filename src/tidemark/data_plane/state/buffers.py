"""What Spark keeps for an aggregate while it goes on, and the value that follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.compiler.plan.plan import Aggregate, AggregatePlan, WindowPlan

Buffer = Sequence[Any]


@dataclass(frozen=True)
class Kept:
    """How many columns an aggregate keeps, and its value from them."""

    width: int
    value: Callable[[Buffer], Any]


def _mean(buffer: Buffer) -> float | None:
    total, count = buffer
    return float(total) / count if count else None


def _variance(buffer: Buffer) -> float | None:
    """From count, mean and the sum of squared differences; of one value there is none."""
    count, _, squares = buffer
    return squares / (count - 1) if count and count > 1 else None


def _deviation(buffer: Buffer) -> float | None:
    variance = _variance(buffer)
    return None if variance is None else math.sqrt(variance)


def _first(buffer: Buffer) -> Any:
    return buffer[0]


FIRST = Kept(1, _first)
EXTREME = Kept(2, _first)
KEPT: dict[str, Kept] = {
    "count": FIRST,
    "count_if": FIRST,
    "sum": FIRST,
    "min": FIRST,
    "max": FIRST,
    "avg": Kept(2, _mean),
    "first": EXTREME,
    "last": EXTREME,
    "min_by": EXTREME,
    "max_by": EXTREME,
    "stddev": Kept(3, _deviation),
    "variance": Kept(3, _variance),
}


def finished_values(operator: WindowPlan | AggregatePlan, buffer: Buffer) -> tuple[dict[str, Any], list[str]]:
    """The values by name, and the names of those that cannot be told: from the first of Spark's own forms on.

    Spark keeps equal aggregates once.
    """
    values: dict[str, Any] = {}
    places: dict[Any, int] = {}
    place = 0
    for index, aggregate in enumerate(operator.aggregate):
        kept = KEPT.get(aggregate.function)
        if kept is None or _is_decimal_sum(aggregate):
            return values, [item.name for item in operator.aggregate[index:]]
        identity = (aggregate.function, aggregate.arguments, aggregate.parameters)
        if identity not in places:
            places[identity] = place
            place += kept.width
        values[aggregate.name] = kept.value(buffer[places[identity] : places[identity] + kept.width])
    return values, []


def _is_decimal_sum(aggregate: Aggregate) -> bool:
    """Over decimals Spark keeps one more column, which says whether there was a value."""
    return aggregate.function in ("sum", "avg") and any("decimal" in each.type for each in aggregate.arguments)
