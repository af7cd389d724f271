"""The accounting of one epoch, from what was counted in the plan; nothing here is the difference of two others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tidemark.compiler.plan.plan import (
    AggregatePlan,
    BranchPlan,
    DedupPlan,
    ExecutionPlan,
    FilterPlan,
    FlatMapPlan,
    OperatorPlan,
    QueryPlan,
    WindowPlan,
)
from tidemark.data_plane.query.paths import SIDE_PORTS, split_reference
from tidemark.protocol.messages import Accounting, OperatorCounts, SinkCounts, SourceCounts

Observed = Mapping[str, list[Any]]
Counts = TypeVar("Counts", SourceCounts, OperatorCounts, SinkCounts)


@dataclass(frozen=True)
class Split:
    """The rows that reached a stateful operator, by whether they came in time."""

    late: int = 0
    passed: int = 0


@dataclass
class EpochCounts:
    """What is known of one epoch: observed values by name, late splits by operator, rows by sink and side port.

    `sink_ms` is how long each sink took that wrote. `refused` are the rows, by sink, that its target refused by their
    content; they are not among `sink_rows`.
    """

    observed: Observed
    splits: dict[str, Split] = field(default_factory=dict)
    side_rows: dict[str, int] = field(default_factory=dict)
    sink_rows: dict[str, int] = field(default_factory=dict)
    sink_ms: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)


class Accountant:
    """Turns the counts of an epoch into the accounting of the sources and operators this query answers for."""

    def __init__(self, plan: ExecutionPlan, query: QueryPlan) -> None:
        self._plan = plan
        self._query = query

    def account(self, counts: EpochCounts) -> Accounting:
        nodes = self._query.accounts
        return Accounting(
            sources={node: self._source(node, counts) for node in nodes if node in self._plan.sources},
            operators={node: self._operator(node, counts) for node in nodes if node in self._plan.operators},
            sinks={
                sink: SinkCounts(rows=rows, refused=counts.refused.get(sink, 0))
                for sink, rows in counts.sink_rows.items()
            },
        )

    def _source(self, node: str, counts: EpochCounts) -> SourceCounts:
        events_in, accepted, errors, *_ = counts.observed.get(f"source:{node}", [0, 0, 0])
        return SourceCounts(events_in=events_in, accepted=accepted, errors=errors)

    def _operator(self, node: str, counts: EpochCounts) -> OperatorCounts:
        operator = self._plan.operators[node]
        observed = counts.observed
        if isinstance(operator, FilterPlan):
            rows_in, passed, filtered = observed.get(f"filter:{node}", [0, 0, 0])
            return OperatorCounts(rows_in=rows_in, rows_out=passed, passed=passed, filtered=filtered)
        if isinstance(operator, DedupPlan):
            rows_in = observed.get(f"arrived:{node}", [0])[0]
            passed, duplicates = observed.get(f"dedup:{node}", [0, 0])
            late = counts.splits.get(node, Split()).late
            return OperatorCounts(rows_in=rows_in, rows_out=passed, passed=passed, duplicates=duplicates, late=late)
        if isinstance(operator, WindowPlan):
            rows_in = observed.get(f"arrived:{node}", [0])[0]
            split = counts.splits.get(node, Split(passed=rows_in))
            results = observed.get(f"results:{node}", [0])[0]
            return OperatorCounts(rows_in=rows_in, rows_out=results, passed=split.passed, late=split.late)
        rows_in = sum(self._emitted(reference, counts) for reference in operator.inputs)
        return OperatorCounts(rows_in=rows_in, rows_out=self._rows_out(operator, rows_in, counts), passed=rows_in)

    def _rows_out(self, operator: OperatorPlan, rows_in: int, counts: EpochCounts) -> int:
        if isinstance(operator, FlatMapPlan):
            return int(counts.observed.get(f"flat_map:{operator.id}", [0])[0])
        if isinstance(operator, AggregatePlan):
            return int(counts.observed.get(f"results:{operator.id}", [0])[0])
        return rows_in

    def _emitted(self, reference: str, counts: EpochCounts) -> int:
        """How many rows left by a port."""
        node, port = split_reference(reference)
        if reference in counts.side_rows or port in SIDE_PORTS:
            return counts.side_rows.get(reference, 0)
        if node in self._plan.sources:
            return self._source(node, counts).accepted
        operator = self._plan.operators[node]
        if isinstance(operator, BranchPlan):
            ports = [*[item.name for item in operator.when], "main"]
            tallies = counts.observed.get(f"branch:{node}", [0] * len(ports))
            return int(tallies[ports.index(port)])
        return self._operator(node, counts).rows_out


def added(total: Accounting, epoch: Accounting) -> Accounting:
    """Totals that include one more epoch."""
    return Accounting(
        sources={**total.sources, **{k: _sum(total.sources.get(k), v) for k, v in epoch.sources.items()}},
        operators={**total.operators, **{k: _sum(total.operators.get(k), v) for k, v in epoch.operators.items()}},
        sinks={**total.sinks, **{k: _sum(total.sinks.get(k), v) for k, v in epoch.sinks.items()}},
    )


def _sum(total: Counts | None, epoch: Counts) -> Counts:
    if total is None:
        return epoch
    return type(epoch)(**{name: getattr(total, name) + value for name, value in epoch})
