"""One epoch of one query: run the plan, then commit its sinks one after the other.

Spark has logged offsets and watermark before this runs. A sink that already holds the epoch, after a crash, is
passed over; the plan runs all the same, because the state must see every epoch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tidemark.compiler.plan.plan import BranchPlan, ExecutionPlan, QueryPlan, SinkPlan
from tidemark.data_plane.epoch.accounting import EpochCounts
from tidemark.data_plane.epoch.rows import rows_for
from tidemark.data_plane.epoch.side_ports import EpochSidePorts, SidePorts
from tidemark.data_plane.epoch.sinks import OpenSink, SinkWriter
from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.query.frames import split_reference
from tidemark.data_plane.query.lowering import stateless
from tidemark.data_plane.spark_internals import EpochFacts, Execution
from tidemark.errors import NotFresh, TooManyErrors


@dataclass(frozen=True)
class EpochRunner:
    """`finished` marks a job whose windows are closed for good: it takes no new events."""

    plan: ExecutionPlan
    query: QueryPlan
    side_ports: SidePorts
    sinks: list[OpenSink]
    writer: SinkWriter
    failpoints: Failpoints
    finished: bool = False

    def run(self, frame: DataFrame, epoch: int, execution: Execution, facts: EpochFacts) -> EpochCounts:
        """Everything of the epoch that readers can see; raises before the first commit when the input is refused."""
        counts = EpochCounts(observed={})
        self._write_main(frame, epoch, execution, counts)
        counts.observed = execution.observed()
        side = self.side_ports.collect(execution, facts, counts)
        self._write_side(side, epoch, counts)
        return counts

    def _write_main(self, frame: DataFrame, epoch: int, execution: Execution, counts: EpochCounts) -> None:
        sinks = [opened for opened in self.sinks if not self.side_ports.feeds(opened.plan.id)]
        pending = [opened for opened in sinks if opened.sink.held(epoch) is None]
        several = len(pending) > 1
        if several:
            frame = frame.persist(StorageLevel.DISK_ONLY)
        if len(pending) != 1 or self._refuses_input():
            frame.write.format("noop").mode("append").save()
            self._check_input(execution)
        for opened in sinks:
            self._write(opened, self._port_of(frame, opened.plan), epoch, counts)
        if several:
            frame.unpersist()

    def _write_side(self, side: EpochSidePorts, epoch: int, counts: EpochCounts) -> None:
        for opened in self.sinks:
            if self.side_ports.feeds(opened.plan.id):
                rows = side.frame(opened.plan)
                counts.sink_rows[opened.plan.id] = 0
                if rows is not None:
                    self._write(opened, rows, epoch, counts)
        side.close()

    def _write(self, opened: OpenSink, frame: DataFrame, epoch: int, counts: EpochCounts) -> None:
        sink = opened.plan.id
        held = opened.sink.held(epoch)
        if held is not None:
            counts.sink_rows[sink] = held
            return
        started = time.monotonic()
        counts.sink_rows[sink] = self.writer.write(opened.sink, epoch, rows_for(opened.plan, frame, self.plan))
        counts.sink_ms[sink] = round((time.monotonic() - started) * 1000)
        self.failpoints.reach("between_sinks", epoch)

    def _port_of(self, frame: DataFrame, sink: SinkPlan) -> DataFrame:
        node, port = split_reference(sink.input)
        operator = self.plan.operators.get(node)
        return stateless.take_port(operator, frame, port) if isinstance(operator, BranchPlan) else frame

    def _refuses_input(self) -> bool:
        sources = [self.plan.sources[node] for node in self.query.sources]
        return self.finished or any(
            source.on_error == "fail" or source.max_error_rate is not None for source in sources
        )

    def _check_input(self, execution: Execution) -> None:
        observed = execution.observed()
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
        source = self.plan.sources[node]
        limit = 0.0 if source.on_error == "fail" else source.max_error_rate
        if limit is not None and errors > limit * events_in:
            raise TooManyErrors(
                f"source {node}: {errors} of {events_in} records of an epoch could not be read",
                hint=f"connect {node}.errors to a sink to see them, or relax `on_error` and `max_error_rate`",
                step=node,
            )
