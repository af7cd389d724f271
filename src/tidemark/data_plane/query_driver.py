"""One query from start to stop: Spark calls it for every epoch, its idle signal moves quiet time on.

Epochs and idle signals take turns. Idle time counts only between them, so neither a slow epoch, nor a sink outage,
nor downtime makes anything late.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from tidemark.compiler.plan.plan import DedupPlan, WindowPlan
from tidemark.connectors.connector import GrowingSource, NotedSource, Source
from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.data_plane.epoch.accounting import Accountant, EpochCounts
from tidemark.data_plane.epoch.progress import Progress, to_datetime
from tidemark.data_plane.epoch.runner import EpochRunner
from tidemark.data_plane.epoch.trust import Outgrown, Trust
from tidemark.data_plane.epoch.watermark import QueryWatermark
from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.query.counting import read_through
from tidemark.data_plane.query.frames import QueryFrames
from tidemark.data_plane.report.measures import EpochMeasures, TaskTimes, busy_shares, measure
from tidemark.data_plane.spark_internals import EpochFacts, Execution
from tidemark.protocol.messages import EpochCommitted

_LOG = logging.getLogger(__name__)
_STARTING = 60.0
_MOVES_KEPT = 100


class StopRequested(Exception):
    """Raised instead of beginning another epoch; that epoch is logged and runs at the next start."""


class QueryDriver:
    def __init__(
        self,
        runner: EpochRunner,
        progress: Progress,
        checkpoint: Checkpoint,
        sources: Mapping[str, Source],
        failpoints: Failpoints,
        trust: Trust,
        work: TaskTimes | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = runner.query.id
        self.progress = progress
        self.checkpoint = checkpoint
        self.failure: Exception | None = None
        self._runner = runner
        self._accountant = Accountant(runner.plan, runner.query)
        self._stateful = any(
            isinstance(runner.plan.operators[node], DedupPlan | WindowPlan) for node in runner.query.operators
        )
        self._sources = sources
        self._failpoints = failpoints
        self._trust = trust
        self._work = work
        self._clock = clock
        self._turn = threading.Lock()
        self._stopping = threading.Event()
        self._attached = threading.Event()
        self._quiet_since = clock()
        self._epoch_began = clock()
        self._planned_at: float | None = None
        self._reports: dict[int, EpochCommitted] = {}
        self._moved_at: dict[int, float] = {}

    def start(self, frames: QueryFrames, interval_ms: int, *, bounded: bool) -> None:
        """A bounded query reads what is there when it starts; what comes later is left to another run."""
        self._interval_ms = interval_ms
        self._bounded = bounded
        self._start(frames)

    def _start(self, frames: QueryFrames) -> None:
        self._frames = frames
        self._to_be_bounded = self._bounded
        writer = frames.terminal().writeStream.outputMode(frames.output_mode).foreachBatch(self._on_epoch)
        writer = writer.option("checkpointLocation", str(self.checkpoint.folder)).queryName(self.id)
        self._frames.set_source_names()
        self._query = writer.trigger(processingTime=f"{self._interval_ms} milliseconds").start()
        self._execution = Execution(self._query)
        self.spark_id = str(self._query.id)
        self._attached.set()

    def start_again(self, frames: QueryFrames) -> None:
        """After `Outgrown`: the epoch that the query was not built for is logged, and runs now."""
        self._attached.clear()
        self.failure = None
        self._start(frames)

    @property
    def can_be_called_off(self) -> bool:
        """Whether nothing of an epoch can be seen before a sink asks to commit it."""
        return all(opened.sink.exactly_once for opened in self._runner.sinks)

    @property
    def started(self) -> bool:
        return self._attached.is_set()

    @property
    def query(self) -> StreamingQuery:
        return self._query

    # --- epochs -----------------------------------------------------------------------------------------------

    def _on_epoch(self, frame: DataFrame, epoch: int) -> None:
        """An exception here stops the query and leaves the epoch to be replayed."""
        self._attached.wait(_STARTING)
        with self._turn:
            self._epoch_began = self._clock()
            try:
                self._epoch(frame, epoch)
            except Exception as failure:
                self.failure = failure
                raise
            finally:
                self._quiet_since = self._clock()

    def _epoch(self, frame: DataFrame, epoch: int) -> None:
        if self._stopping.is_set():
            raise StopRequested
        started = time.monotonic()
        self._bound_sources()
        self._failpoints.reach("after_log", epoch)
        self._check_room(epoch)
        self.checkpoint.keep_logged(epoch)
        facts = self._execution.facts()
        self.progress.watermark.at_least(facts.watermark_ms * 1000)
        if epoch == self.progress.last_epoch:
            self._repeat(frame, facts)
            return
        known_as = epoch + self.progress.shift
        with self._in_trust(facts):
            counts = self._runner.run(frame, known_as, self._execution, facts, self._trust.lines)
        self._advance_watermark(counts)
        accounted, holding = self._accountant.account(counts), self._runner.holding(known_as)
        self.progress.commit(epoch, self._events(counts), accounted, holding)
        self._reports[epoch] = self._report(known_as, facts, counts, time.monotonic() - started)
        self._failpoints.reach("after_epoch_record", epoch)

    @contextmanager
    def _in_trust(self, facts: EpochFacts) -> Iterator[None]:
        """What the query was built in trust of holds when this ends, and before a sink commits."""
        flat = (lambda: self._frames.flat_lines(self._execution)) if self._frames.reads_flat_json else None
        in_time = None if self._frames.guarded else lambda: self._runner.side_ports.all_in_time(self._execution, facts)
        with self._trust.during(flat, in_time):
            if not self.can_be_called_off:
                self._trust.lines()
            yield

    def _check_room(self, epoch: int) -> None:
        growing = [source for source in self._sources.values() if isinstance(source, GrowingSource)]
        logged = self.checkpoint.offsets(epoch) if growing else {}
        if any(source.outgrown(offsets) for source in growing for offsets in logged.values()):
            raise Outgrown

    def _advance_watermark(self, counts: EpochCounts) -> None:
        watermark = self.progress.watermark
        growing = [node for node, source in self._sources.items() if isinstance(source, GrowingSource)]
        watermark.read(_newest(counts, self._runner.query.sources), dict.fromkeys(growing, self._since_planned()))
        watermark.advance()
        self._hand_over_watermark()

    def _since_planned(self) -> int:
        """Idle time that the epochs themselves took, in microseconds: a busy partition must not keep others awake.

        Counted from when the last epoch was planned, or from the last idle signal, to when this one was; nothing for
        the first epoch after a start, which may have been planned long ago.
        """
        now, before = self._epoch_began, self._planned_at
        self._planned_at = now
        return 0 if before is None else int((now - before) * 1_000_000)

    def _hand_over_watermark(self) -> None:
        if (value := self.progress.watermark.value) is not None and value > 0:
            self._note_moved(value // 1000)
            self._execution.set_watermark(value // 1000)

    def _note_moved(self, watermark_ms: int) -> None:
        """When the watermark reached its newest values, from which the time until results are committed counts."""
        now = time.monotonic()
        self._moved_at = dict(list(self._moved_at.items())[-_MOVES_KEPT:])
        self._moved_at.setdefault(watermark_ms, now)

    def _report(self, epoch: int, facts: EpochFacts, counts: EpochCounts, seconds: float) -> EpochCommitted:
        return EpochCommitted(
            query=self.id,
            epoch=epoch,
            events=self._events(counts),
            duration_ms=round(seconds * 1000),
            watermark=to_datetime(facts.watermark_ms * 1000 or None),
            next_watermark=to_datetime(self.progress.watermark.value),
            sources=self.progress.source_status(),
            total=self.progress.total,
            firing_ms=dict.fromkeys(self._fired(counts), self._since_moved(facts.watermark_ms)),
            sink_commit_ms=counts.sink_ms,
        )

    def _events(self, counts: EpochCounts) -> int:
        """How many the epoch read, from every source of the query."""
        return sum(counts.observed.get(f"source:{node}", [0])[0] for node in self._runner.query.sources)

    def _fired(self, counts: EpochCounts) -> list[str]:
        """The operators whose windows closed in an epoch."""
        windows = ((node, self._runner.plan.operators[node]) for node in self._runner.query.operators)
        closing = [node for node, plan in windows if isinstance(plan, WindowPlan) and plan.emit == "on_close"]
        return [node for node in closing if counts.observed.get(f"results:{node}", [0])[0]]

    def _since_moved(self, watermark_ms: int) -> int:
        now = time.monotonic()
        return round((now - self._moved_at.get(watermark_ms, now)) * 1000)

    def on_committed(self, done: StreamingQueryProgress) -> tuple[EpochCommitted, EpochMeasures] | None:
        """Spark has committed an epoch; returns the report to send and what was measured."""
        self._failpoints.reach("after_epoch_commit", done.batchId)
        self._note_offsets(done.batchId)
        report = self._reports.pop(done.batchId, None)
        if report is None:
            return None
        measures = self._measure(done, report)
        return report.model_copy(update={"lag_events": measures.lag}), measures

    def _note_offsets(self, epoch: int) -> None:
        """For each source that this query accounts for, so that it is noted once."""
        for node in self._runner.query.sources:
            source = self._sources[node]
            if node in self._runner.query.accounts and isinstance(source, NotedSource):
                for offsets in self.checkpoint.offsets(epoch).values():
                    source.committed(offsets)

    def _measure(self, done: StreamingQueryProgress, report: EpochCommitted) -> EpochMeasures:
        plan, query = self._runner.plan, self._runner.query
        seconds = max(done.batchDuration, report.duration_ms) / 1000
        busy = self._busy(str(done.runId), seconds) if self._work else {}
        return measure(plan, query, done, self._sources, self._execution.source_names(), busy)

    def _busy(self, run_id: str, seconds: float) -> dict[str, float]:
        assert self._work is not None
        jobs = self._work.since_last_time(run_id)
        return busy_shares(self._runner.plan, self._runner.query, jobs, self._work.slots, seconds)

    # --- between epochs ---------------------------------------------------------------------------------------

    def on_idle(self) -> None:
        """Spark looked for new data and found none: the time since the last epoch or signal was quiet."""
        if self._turn.locked():
            return
        now = self._clock()
        quiet = int((now - self._quiet_since) * 1_000_000)
        self._quiet_since = now
        self._planned_at = now if self._planned_at is not None else None
        self.move(lambda watermark: watermark.waited(quiet))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While this is held no epoch is planned, so what changes in several sources comes in one epoch."""
        with self._execution.between_epochs():
            yield

    def move(self, change: Callable[[QueryWatermark], None]) -> None:
        """Changes what the query knows of time, between epochs, and lets windows close accordingly."""
        if self._cannot_close_windows() and self.progress.watermark.would_move(change):
            self._run_last_epoch_again()
        with self._turn:
            change(self.progress.watermark)
            self._tick()

    def bound(self) -> bool:
        """Keeps a bounded query to what is there now; False while Spark has not made its sources.

        An epoch that is running has seen to it by itself, as the first one after a start does.
        """
        if self._to_be_bounded and self._turn.acquire(blocking=False):
            try:
                with self.paused():
                    self._bound_sources()
            finally:
                self._turn.release()
        return not self._to_be_bounded

    def _bound_sources(self) -> None:
        if self._to_be_bounded:
            self._to_be_bounded = not self._execution.bound_sources()

    def drain(self) -> None:
        """Moves the watermark to the end of time: every window closes, and an event read after that would be late."""
        self.move(QueryWatermark.drain)

    def _tick(self) -> None:
        before = self.progress.watermark.value
        value = self.progress.watermark.advance()
        if value is not None and value != before and value > 0:
            self._note_moved(value // 1000)
            self._execution.tick_watermark(value // 1000)

    def _cannot_close_windows(self) -> bool:
        """Until it has run an epoch, Spark plans none without data, so after a start a quiet query would hang."""
        return self._stateful and self.progress.last_epoch is not None and not self._execution.has_run()

    def _run_last_epoch_again(self) -> None:
        """Takes back Spark's commit of the last epoch; the sinks hold that epoch and are not asked again."""
        assert self.progress.last_epoch is not None
        self._query.stop()
        self._attached.clear()
        self.checkpoint.take_back_commit(self.progress.last_epoch)
        self._start(self._frames)
        self._wait_for_commit(self.progress.last_epoch, math.inf)

    def _wait_for_commit(self, epoch: int, deadline: float) -> None:
        """Until the epoch is committed or the query has ended; what comes after that epoch is not waited for."""
        while self._query.isActive and not self.checkpoint.committed(epoch) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _repeat(self, frame: DataFrame, facts: EpochFacts) -> None:
        """An epoch that is done and recorded already, run for Spark's sake alone."""
        with self._in_trust(facts):
            read_through(frame)
        self._hand_over_watermark()

    def abandon(self) -> None:
        """Ends the query wherever it is; its epoch is replayed by the next start."""
        try:
            self._query.stop()
        except (PySparkException, Py4JError) as problem:
            _LOG.warning("query %s could not be stopped: %s", self.id, problem)

    def stop(self, deadline: float) -> None:
        """Stops at an epoch boundary: the running epoch is finished and committed, no other is begun."""
        self._stopping.set()
        with self._turn:
            last = self.progress.last_epoch
        if last is not None:
            self._wait_for_commit(last, deadline)
        self._query.stop()
        # Spark's own signal of the last epoch may come too late.
        if last is not None and self.checkpoint.committed(last):
            self._note_offsets(last)


def _newest(counts: EpochCounts, sources: Iterable[str]) -> dict[str, dict[int, int]]:
    """The largest event times of an epoch, by source and by partition, of those that had events."""
    observed = {node: counts.observed.get(f"source:{node}", [0, 0, 0])[3:] for node in sources}
    return {
        node: {index: value for index, value in enumerate(newest) if value is not None}
        for node, newest in observed.items()
    }
