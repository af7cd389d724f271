"""What is known of a run from what its drivers said: a plain value that renderers and the final summary read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.protocol.messages import (
    Accounting,
    AnyMessage,
    Ended,
    EpochCommitted,
    Failure,
    OperatorCounts,
    SinkCounts,
    SourceCounts,
    Started,
)
from tidemark.watermarks import smallest_watermark


@dataclass
class Progress:
    """`last` holds the newest epoch of each query; `state` is the word of SPEC's lifecycle that fits now.

    What the plan names is counted from the beginning, also where nothing has happened yet.
    """

    job: str
    plan: ExecutionPlan | None = None
    state: str = "STARTING"
    attempt: int = 0
    epochs: int = 0
    total: Accounting = field(default_factory=Accounting)
    last: dict[str, EpochCommitted] = field(default_factory=dict)
    failure: Failure | None = None
    final_watermark: datetime | None = None

    def hear(self, message: AnyMessage) -> None:
        match message:
            case Started():
                self.state = "RUNNING"
                self.attempt = message.attempt
            case EpochCommitted():
                self.epochs += 1
                self.last[message.query] = message
                self.total = message.total
            case Ended():
                self.epochs = message.epochs
                self.final_watermark = message.watermark
                self.total = message.total

    @property
    def watermark(self) -> datetime | None:
        """The smallest of the queries'; none as long as one of them has none."""
        if self.final_watermark is not None:
            return self.final_watermark
        return smallest_watermark(epoch.next_watermark or epoch.watermark for epoch in self.last.values())

    @property
    def events_in(self) -> int:
        return sum(counts.events_in for counts in self.total.sources.values())

    @property
    def errors(self) -> int:
        return sum(counts.errors for counts in self.total.sources.values())

    @property
    def late(self) -> int:
        return sum(counts.late for counts in self.total.operators.values())

    @property
    def lag_events(self) -> int | None:
        known = [epoch.lag_events for epoch in self.last.values() if epoch.lag_events is not None]
        return max(known, default=None)

    @property
    def events_per_second(self) -> float:
        return sum(rate(epoch) for epoch in self.last.values())

    def _complete_total(self) -> Accounting:
        if self.plan is None:
            return self.total
        return Accounting(
            sources={**dict.fromkeys(self.plan.sources, SourceCounts()), **self.total.sources},
            operators={**dict.fromkeys(self.plan.operators, OperatorCounts()), **self.total.operators},
            sinks={**dict.fromkeys(self.plan.sinks, SinkCounts()), **self.total.sinks},
        )

    def summary(self) -> dict[str, Any]:
        """The object that `run --json` ends with."""
        total = self._complete_total()
        answer: dict[str, Any] = {
            "state": self.state,
            "epochs": self.epochs,
            "watermark": iso(self.watermark),
            "sources": {name: _source(counts) for name, counts in total.sources.items()},
            "operators": {name: _operator(counts) for name, counts in total.operators.items()},
            "sinks": {name: {"rows": counts.rows} for name, counts in total.sinks.items()},
        }
        if self.failure is not None:
            answer["error"] = error_fields(self.failure)
        return answer


def rate(epoch: EpochCommitted) -> float:
    return epoch.events * 1000 / max(epoch.duration_ms, 1)


def iso(instant: datetime | None) -> str | None:
    if instant is None:
        return None
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")


def error_fields(failure: Failure) -> dict[str, str | None]:
    return {"code": failure.code, "message": failure.message, "hint": failure.hint}


def _source(counts: SourceCounts) -> dict[str, int]:
    return {"in": counts.events_in, "accepted": counts.accepted, "errors": counts.errors}


def _operator(counts: OperatorCounts) -> dict[str, int]:
    return counts.model_dump(include={"rows_in", "rows_out", "late", "filtered", "duplicates"})
