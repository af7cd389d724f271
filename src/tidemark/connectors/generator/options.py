"""Options of the generator: events that are a function of the seed and their number alone.

Event n has the time `start + n / rate`. With a `count` the events come as fast as they are read; without a rate
their times are one millisecond apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from tidemark.compiler.definition.model import Model, PositiveDuration, Text, Timestamp, instant, milliseconds
from tidemark.compiler.definition.options import SourceOptions
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.schema import Type


class OutOfOrder(Model):
    """`fraction` of the events are moved back in time, by `max` at most."""

    fraction: Annotated[float, Field(ge=0, le=1)]
    max: PositiveDuration


class GeneratorSourceOptions(SourceOptions):
    columns: dict[str, Text] = Field(default_factory=dict)
    rate: Annotated[float, Field(gt=0, le=1e9)] | None = None
    count: Annotated[int, Field(ge=1, le=10**12)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    partitions: Annotated[int, Field(ge=1, le=1024)] = 1
    start: Timestamp | None = None
    out_of_order: OutOfOrder | None = None
    nexmark: Any = None

    @property
    def endless(self) -> bool:
        return self.count is None

    def computed_columns(self) -> dict[str, str] | None:
        return self.columns

    def planned(self, computed: Mapping[str, str]) -> dict[str, Any]:
        disorder = self.out_of_order
        moved = disorder and {"fraction": disorder.fraction, "max": milliseconds(disorder.max)}
        return {
            "columns_sql": dict(computed),
            "rate": self.rate,
            "count": self.count,
            "seed": self.seed,
            "partitions": self.partitions,
            "start_ms": round(instant(self.start).timestamp() * 1000) if self.start else None,
            "out_of_order": moved,
        }

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        if self.nexmark is not None:
            hint = "Write the columns as expressions of n."
            yield Problem(
                "not_available", "the nexmark generator is not available yet", hint, ("nexmark",), at_key=True
            )
            return
        if not self.columns:
            hint = "Write `columns: {name: expression of n}`."
            yield Problem("missing_field", "the generator needs `columns`", hint, ("columns",))
        if self.rate is None and self.count is None:
            hint = "Write `rate: 100` (events a second), `count: 1000`, or both."
            yield Problem("rate_or_count", "the generator needs a `rate` or a `count`", hint, at_key=True)
