"""One epoch of one query: run the plan, then commit its sinks one after the other.

Spark has logged offsets and watermark before this runs. A sink that already holds the epoch, after a crash, is
passed over; the plan runs all the same, because the state must see every epoch, and side rows are read to be counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tidemark.compiler.plan.plan import BranchPlan, ExecutionPlan, QueryPlan, SinkPlan
from tidemark.connectors.connector import RefusingSink
from tidemark.data_plane.epoch.accounting import EpochCounts, Observed
from tidemark.data_plane.epoch.refused import RefusedRows
from tidemark.data_plane.epoch.rows import rows_for
from tidemark.data_plane.epoch.side_ports import EpochSidePorts, SidePorts
from tidemark.data_plane.epoch.sinks import OpenSink, SinkWriter
from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.query.counting import read_through
from tidemark.data_plane.query.lowering import stateless
from tidemark.data_plane.query.paths import split_reference
from tidemark.data_plane.spark_internals import EpochFacts, Execution, unordered
from tidemark.errors import NotFresh, TooManyErrors
from tidemark.protocol.messages import Warned


@dataclass(frozen=True)
class EpochRunner:
    """`finished` marks a query whose windows are closed for good: it takes no new events."""

    plan: ExecutionPlan
    query: QueryPlan
    side_ports: SidePorts
    sinks: list[OpenSink]
    writer: SinkWriter
    failpoints: Failpoints
    refused: RefusedRows
    warn: Callable[[Warned], None]
    finished: bool = False
    warned: set[str] = field(default_factory=set)

    def run(
        self,
        frame: DataFrame,
        epoch: int,
        execution: Execution,
        facts: EpochFacts,
        lines: Callable[[], Mapping[str, int]],
    ) -> EpochCounts:
        """Everything of the epoch that readers can see; raises before the first commit when the input is refused.

        `lines` are those of sources whose reader leaves out what it cannot read; asked for when the plan has run.
        """
        counts = EpochCounts(observed={})

        def observed() -> Observed:
            return self.side_ports.observed(execution, facts, lines())

        self._write_main(frame, epoch, observed, counts)
        counts.observed = counts.observed or observed()
        side = self.side_ports.collect(execution, facts, counts)
        for opened in self.sinks:
            self._hand_on_refused(opened, side, epoch, counts)
        self._write_side(side, epoch, counts)
        return counts

    def holding(self, epoch: int) -> list[str]:
        """The sinks whose ledger has the epoch."""
        return [opened.plan.id for opened in self.sinks if self.writer.held(opened.sink, epoch) is not None]

    def _write_main(self, frame: DataFrame, epoch: int, observed: Callable[[], Observed], counts: EpochCounts) -> None:
        sinks = [opened for opened in self.sinks if not self.side_ports.feeds(opened.plan.id)]
        pending = [opened for opened in sinks if self.writer.held(opened.sink, epoch) is None]
        several = len(pending) > 1
        if several:
            frame = unordered(frame).persist(StorageLevel.DISK_ONLY)
        if len(pending) != 1 or self._refuses_input():
            read_through(frame)
            counts.observed = observed()
            self._check_input(counts.observed)
        for opened in sinks:
            self._write(opened, self._port_of(frame, opened.plan), epoch, counts)
        if several:
            frame.unpersist()

    def _write_side(self, side: EpochSidePorts, epoch: int, counts: EpochCounts) -> None:
        try:
            for opened in self.sinks:
                if self.side_ports.feeds(opened.plan.id):
                    self._write_side_rows(opened, side.frame(opened.plan), epoch, counts)
                    self._hand_on_refused(opened, side, epoch, counts)
            side.take_counts()
        finally:
            side.close()
        self.refused.clear()

    def _write_side_rows(self, opened: OpenSink, frame: DataFrame | None, epoch: int, counts: EpochCounts) -> None:
        """A side port without rows leaves its sinks alone; rows that a sink holds are counted all the same."""
        if frame is None:
            counts.sink_rows[opened.plan.id] = 0
        elif not self._write(opened, frame, epoch, counts):
            read_through(frame)

    def _write(self, opened: OpenSink, frame: DataFrame, epoch: int, counts: EpochCounts) -> bool:
        """Commits the epoch to one sink; False when the sink holds it and has read nothing."""
        held = self.writer.held(opened.sink, epoch)
        if held is None:
            started = time.monotonic()
            with rows_for(opened.plan, frame, self.plan) as rows:
                counts.sink_rows[opened.plan.id] = self.writer.write(opened.sink, epoch, rows)
            counts.sink_ms[opened.plan.id] = round((time.monotonic() - started) * 1000)
            self.failpoints.reach("between_sinks", epoch, opened.plan.id)
            return True
        counts.sink_rows[opened.plan.id] = held
        return False

    def _hand_on_refused(self, opened: OpenSink, side: EpochSidePorts, epoch: int, counts: EpochCounts) -> None:
        """Gives what a target refused to the sinks of its port; without one it is counted, and said once."""
        sink, id_ = opened.sink, opened.plan.id
        count = self.writer.refused(sink, epoch) if id_ in counts.sink_rows and id_ not in counts.refused else 0
        if not count or not isinstance(sink, RefusingSink):
            return
        counts.refused[id_] = count
        if self.side_ports.keeps_refused(id_):
            rows = self.writer.patiently(lambda: self.refused.frame(opened.plan, sink, epoch))
            side.provide_refused(id_, rows, count)
        elif id_ not in self.warned:
            self.warned.add(id_)
            self.warn(_refused_unread(id_, count))

    def _port_of(self, frame: DataFrame, sink: SinkPlan) -> DataFrame:
        node, port = split_reference(sink.input)
        operator = self.plan.operators.get(node)
        return stateless.take_port(operator, frame, port) if isinstance(operator, BranchPlan) else frame

    def _refuses_input(self) -> bool:
        limits = [self.plan.sources[node].error_limit for node in self.query.sources]
        return self.finished or any(limit is not None for limit in limits)

    def _check_input(self, observed: Observed) -> None:
        for node in self.query.sources:
            events_in, _, errors, *_ = observed.get(f"source:{node}", [0, 0, 0])
            if self.finished and events_in:
                raise NotFresh(
                    f"the job is finished, and source {node} has {events_in} new events",
                    hint="its windows are closed for good; run it again from the start with --fresh",
                    step=node,
                )
            self._check_errors(node, events_in, errors)

    def _check_errors(self, node: str, events_in: int, errors: int) -> None:
        limit = self.plan.sources[node].error_limit
        if limit is not None and errors > limit * events_in:
            raise TooManyErrors(
                f"source {node}: {errors} of {events_in} records of an epoch could not be read",
                hint=f"connect {node}.errors to a sink to see them, or relax `on_error` and `max_error_rate`",
                step=node,
            )


def _refused_unread(sink: str, count: int) -> Warned:
    message = f"{count} rows of an epoch were refused by the target of sink {sink}; they are counted and not kept"
    return Warned(code="rows_refused", message=f"{message}: nothing reads {sink}.errors", step=sink)
