"""Side ports of one epoch: error rows of sources, late rows of operators and what the targets of sinks refused.

They are looked for only when there are some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan, SinkPlan
from tidemark.connectors.connector import Source
from tidemark.data_plane.epoch.accounting import EpochCounts, Observed, Split
from tidemark.data_plane.epoch.late import Arrivals, operators_with_late_rows
from tidemark.data_plane.query.frames import EpochFrames
from tidemark.data_plane.query.paths import side_origins
from tidemark.data_plane.spark_internals import EpochFacts, Execution


class SidePorts:
    """Built once per query: which side ports lead to a sink."""

    def __init__(self, plan: ExecutionPlan, query: QueryPlan, sources: dict[str, Source], spark: SparkSession) -> None:
        self._plan = plan
        self._query = query
        self._sources = sources
        self._spark = spark
        self._origin = side_origins(plan, query)

    def feeds(self, sink: str) -> bool:
        """Whether a sink hangs, directly or through operators, on a side port."""
        return sink in self._origin

    def observed(self, execution: Execution, facts: EpochFacts, lines: Mapping[str, int]) -> Observed:
        """What the epoch counted; of sources whose `lines` were looked at, these are what came in.

        A source with events too far ahead counted them as good: it is counted again. One whose reader left out lines
        did not count them as errors: these are counted here, unless who reads them counts them on the way.
        """
        found = {**execution.observed()}
        for node, count in lines.items():
            _, *others = found.get(f"source:{node}", [0, 0, 0])
            found[f"source:{node}"] = [count, *others]
        ahead = self._sources_with_events_ahead(found, facts)
        left_out = [node for node in self._query.sources if node not in ahead and self._lacks_errors(node, found)]
        if ahead or left_out:
            frames = self._frames(execution, facts)
            found |= {f"source:{node}": frames.recount(node) for node in ahead}
            found |= {f"source:{node}": _with_errors(found, node, _errors(frames.recount(node))) for node in left_out}
        return found

    def _lacks_errors(self, node: str, observed: Observed) -> bool:
        """Whether there are errors that were not counted and will not be by those who read them, or too late."""
        decides = self._plan.sources[node].error_limit is not None
        unread = node in self._query.accounts and f"{node}.errors" not in self._origin.values()
        return (decides or unread) and not _all_are_told(observed, node)

    def all_in_time(self, execution: Execution, facts: EpochFacts) -> bool:
        """Whether no event of the epoch is too far ahead of its ingestion; known once an action has run."""
        return not self._sources_with_events_ahead(execution.observed(), facts)

    def _sources_with_events_ahead(self, observed: Observed, facts: EpochFacts) -> list[str]:
        return [node for node in self._query.sources if self._has_events_ahead(node, observed, facts)]

    def _has_events_ahead(self, node: str, observed: Observed, facts: EpochFacts) -> bool:
        _, _, _, *newest = observed.get(f"source:{node}", [0, 0, 0])
        limit = (facts.started_ms + self._plan.sources[node].watermark.max_future_ms) * 1000
        return any(value is not None and value > limit for value in newest)

    def _frames(self, execution: Execution, facts: EpochFacts) -> EpochFrames:
        return EpochFrames(self._plan, self._query, self._sources, self._spark, execution, facts.started_ms)

    def keeps_refused(self, sink: str) -> bool:
        """Whether a sink of this query takes what another one's target refuses."""
        return f"{sink}.errors" in self._origin.values()

    def collect(self, execution: Execution, facts: EpochFacts, counts: EpochCounts) -> EpochSidePorts:
        """Finds the epoch's error and late rows; those that a sink wants are read, and counted, with it."""
        frames = self._frames(execution, facts)
        epoch = EpochSidePorts(frames, counts, self._origin)
        connected = set(self._origin.values())
        for node in self._sources_with_errors(counts.observed):
            if f"{node}.errors" in connected:
                epoch.provide_errors(node)
        for operator in operators_with_late_rows(self._plan, self._query, counts.observed, facts.previous_watermark_ms):
            arrivals = Arrivals(operator, frames, facts.previous_watermark_ms)
            if f"{operator.id}.late" in connected:
                epoch.provide_late(operator.id, arrivals)
            else:
                counts.splits[operator.id] = arrivals.split()
        return epoch

    def _sources_with_errors(self, observed: Observed) -> list[str]:
        owned = [node for node in self._query.accounts if node in self._plan.sources]
        counts = {node: observed.get(f"source:{node}", [0, 0, 0]) for node in owned}
        return [node for node in owned if _errors(counts[node]) or not _all_are_told(observed, node)]


def _all_are_told(observed: Observed, node: str) -> bool:
    """Whether every record was counted as an event or as an error."""
    events_in, accepted, errors, *_ = observed.get(f"source:{node}", [0, 0, 0])
    return bool(events_in == accepted + errors)


def _errors(counts: list[Any]) -> int:
    return int(counts[2])


def _with_errors(observed: Observed, node: str, errors: int) -> list[Any]:
    events_in, accepted, _, *newest = observed[f"source:{node}"]
    return [events_in, accepted, errors, *newest]


class EpochSidePorts:
    """The side rows of one epoch, read and counted when their sinks are written; several sinks share one reading."""

    def __init__(self, frames: EpochFrames, counts: EpochCounts, origin: dict[str, str]) -> None:
        self._frames = frames
        self._counts = counts
        self._origin = origin
        self._readers = Counter(origin.values())
        self._kept: list[DataFrame] = []
        self._late: dict[str, Observation] = {}
        self._errors: dict[str, Observation] = {}

    def provide_errors(self, node: str) -> None:
        counted = self._errors[node] = Observation()
        rows = self._frames.events(node).errors().observe(counted, F.count(F.lit(1)).alias("rows"))
        self._provide(f"{node}.errors", rows)

    def provide_late(self, node: str, arrivals: Arrivals) -> None:
        counted = self._late[node] = Observation()
        self._provide(f"{node}.late", arrivals.late(counted))

    def provide_refused(self, sink: str, rows: DataFrame, count: int) -> None:
        self._counts.side_rows[f"{sink}.errors"] = count
        self._provide(f"{sink}.errors", rows)

    def frame(self, sink: SinkPlan) -> DataFrame | None:
        """The rows of a side sink; None when its port had none in this epoch."""
        return self._frames.port(sink.input) if self._frames.provides(self._origin[sink.id]) else None

    def take_counts(self) -> None:
        """What was counted on the way to the sinks; blocks unless somebody has read the rows of each of them."""
        for node, counted in self._late.items():
            split = self._counts.splits[node] = Split(counted.get["late"], counted.get["passed"])
            self._counts.side_rows[f"{node}.late"] = split.late
        observed = {**self._counts.observed, **self._frames.observed()}
        for node, counted in self._errors.items():
            errors = self._counts.side_rows[f"{node}.errors"] = counted.get["rows"]
            observed[f"source:{node}"] = _with_errors(observed, node, errors)
        self._counts.observed = observed

    def close(self) -> None:
        for rows in self._kept:
            rows.unpersist()

    def _provide(self, port: str, rows: DataFrame) -> None:
        if self._readers[port] > 1:
            rows = rows.persist(StorageLevel.DISK_ONLY)
            self._kept.append(rows)
        self._frames.provide(port, rows)
