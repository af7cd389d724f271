"""All queries of one job in one driver: build, start, wait, stop. A failure of one stops all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan
from tidemark.connectors.connector import GrowingSource, NotedSource, Sink, SinkContext, Source, SourceContext
from tidemark.connectors.runtime import SINKS, SOURCES
from tidemark.data_plane.checkpoint import Checkpoint, Note
from tidemark.data_plane.endpoints import Endpoints
from tidemark.data_plane.epoch.accounting import added
from tidemark.data_plane.epoch.progress import Progress, to_datetime
from tidemark.data_plane.epoch.refused import RefusedRows
from tidemark.data_plane.epoch.runner import EpochRunner
from tidemark.data_plane.epoch.side_ports import SidePorts
from tidemark.data_plane.epoch.sinks import OpenSink, SinkWriter, open_sinks
from tidemark.data_plane.epoch.trust import Outgrown, Trust
from tidemark.data_plane.epoch.watermark import QueryWatermark
from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.query.frames import QueryFrames
from tidemark.data_plane.query.paths import reads_a_node_twice
from tidemark.data_plane.query_driver import QueryDriver, StopRequested
from tidemark.data_plane.report.classify import classify, java_is_gone
from tidemark.data_plane.report.executors import ExecutorWatch
from tidemark.data_plane.report.measures import TaskTimes
from tidemark.data_plane.report.status import QueryBoard, StatusBoard
from tidemark.data_plane.spark_internals import java_ends, jvm_is_alive, listening
from tidemark.durable import write_atomically
from tidemark.errors import EngineFault, SourceFailure
from tidemark.generations import Generations
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Accounting, Ended, RunSpec, Started
from tidemark.watermarks import smallest_watermark

_LOG = logging.getLogger(__name__)
_FINISHED = "finished"
_REFUSED = "_refused"  # no id of a query begins so
_STOP_SECONDS = 600.0
_LEAVING_SECONDS = 10.0
_DYING_SECONDS = 0.5
_LOOK_AROUND = 0.5
_BOUNDING = 0.05


class JobDriver:
    """`source_types`, `sink_types` and `clock` are what the test kit replaces."""

    def __init__(
        self,
        spec: RunSpec,
        spark: SparkSession,
        send: Callable[[Message], None],
        source_types: Mapping[str, Callable[[SourceContext], Source]] = SOURCES,
        sink_types: Mapping[str, Callable[[SinkContext], Sink]] = SINKS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        self._spark = spark
        self._send = send
        self._executors = ExecutorWatch(spark, send)
        self._clock = clock
        self._state = Path(spec.state)
        self._generations = Generations(self._state)
        # A restored job goes on with the time that its savepoint's job began.
        first_started_at = self._generations.pointer.first_started_at or spec.first_started_at
        self._endpoints = Endpoints(spec, first_started_at, send, source_types, sink_types)
        self._changed = threading.Event()
        self._idle: set[str] = set()
        self._stop_asked = threading.Event()
        self.queries: list[QueryDriver] = []
        self._board = StatusBoard(spec.plan, [])
        self.status = self._board.status("STARTING", Accounting())
        self._sinks: list[Sink] = []
        self._sources: dict[str, dict[str, Source]] = {}

    @property
    def spark(self) -> SparkSession:
        return self._spark

    @property
    def finished(self) -> bool:
        """Whether an earlier run drained this job: its windows are closed for good."""
        return (self._state / _FINISHED).exists()

    # --- running ----------------------------------------------------------------------------------------------

    def run(self) -> Ended:
        """Runs to the end: until drained, or until `ask_stop`. Raises the error of the first query that fails."""
        try:
            with listening(self._spark, self):
                frames = self._build_queries()
                drains = self._drains()
                self._start(frames, bounded=drains)
                state = self._drain() if drains else self._wait_for_stop()
                self._stop_queries()
                return self.ended(state)
        except StopRequested:
            return self.ended("STOPPED")
        except (PySparkException, Py4JError) as problem:
            raise classify(self._cause(problem)) from problem
        finally:
            if self._abandon_queries():
                self._close()

    def ask_stop(self) -> None:
        self._stop_asked.set()
        self._changed.set()

    def _pause(self, seconds: float) -> None:
        """Waits for a sink to come back, unless a stop is asked for: then its epoch is left to the next start."""
        if self._stop_asked.wait(seconds):
            raise StopRequested

    def start(self) -> None:
        """Starts the job and leaves it running."""
        self._start(self._build_queries(), bounded=False)

    def _build_queries(self) -> list[QueryFrames]:
        """Opens every sink of every query before the first epoch of any of them."""
        return [self._build(query) for query in self._spec.plan.queries]

    def _drains(self) -> bool:
        """Whether the job has to end by itself, also to end what an earlier run, cut short, began."""
        begun = any(driver.progress.watermark.drained for driver in self.queries)
        return begun or self.finished or self._spec.until_drained or self._spec.plan.mode == "backfill"

    def _start(self, frames: list[QueryFrames], *, bounded: bool) -> None:
        recovered = any(driver.progress.last_epoch is not None for driver in self.queries)
        ids = tuple(query.id for query in self._spec.plan.queries)
        self._send(Started(attempt=self._spec.attempt, queries=ids, recovered=recovered))
        for driver, frame in zip(self.queries, frames, strict=True):
            driver.start(frame, self._spec.plan.epoch.interval_ms, bounded=bounded)

    def ended(self, state: str) -> Ended:
        watermark = smallest_watermark(driver.progress.watermark.value for driver in self.queries)
        epochs = sum(driver.progress.epochs for driver in self.queries)
        return Ended.model_validate(
            {"state": state, "epochs": epochs, "watermark": to_datetime(watermark), "total": self.total()}
        )

    def total(self) -> Accounting:
        """The accounting of the whole job: each source and operator belongs to exactly one query."""
        total = Accounting()
        for driver in self.queries:
            total = added(total, driver.progress.total)
        return total

    def _drain(self) -> str:
        """Reads what is there, closes every window, and marks the job finished.

        No query begins to read more while others are still being waited for.
        """
        while not all(driver.bound() for driver in self.queries) and not self._stop_asked.is_set():
            self._watch(_BOUNDING)
        for driver in self.queries:
            self._finish_reading(driver)
        if self._stop_asked.is_set():
            return "STOPPED"
        for driver in self.queries:
            driver.drain()
            self._finish_reading(driver)
        if self._stop_asked.is_set():
            return "STOPPED"
        write_atomically(self._state / _FINISHED, "")
        return "FINISHED"

    def _finish_reading(self, driver: QueryDriver) -> None:
        """Waits until Spark has nothing left to do for a query, started again or not; a stop or a failure ends it."""
        done = threading.Event()

        def wait() -> None:
            try:
                driver.query.processAllAvailable()
                done.set()
            except (PySparkException, Py4JError) as problem:
                # Why it failed is found by the watch below, which every wait goes through.
                _LOG.debug("query %s ended while being waited for: %s", driver.id, problem)
            self._changed.set()

        waiting: threading.Thread | None = None
        while not done.is_set() and not self._stop_asked.is_set():
            if waiting is None or not waiting.is_alive():
                waiting = threading.Thread(target=wait, daemon=True)
                waiting.start()
            self._watch()

    def _wait_for_stop(self) -> str:
        while not self._stop_asked.is_set():
            self._watch()
        return "STOPPED"

    def _watch(self, seconds: float = _LOOK_AROUND) -> None:
        """One look around: raises when a query has failed or the JVM is gone."""
        self._changed.wait(seconds)
        self._changed.clear()
        self._look_at_status("RUNNING")
        while self._idle:
            if driver := self._driver(self._idle.pop()):
                driver.on_idle()
        if not jvm_is_alive(self._spark):
            raise java_is_gone()
        self._executors.look()
        for driver in self.queries:
            if driver.query.isActive:
                continue
            if self._stop_asked.is_set() and isinstance(driver.failure, StopRequested | Outgrown):
                continue
            if isinstance(driver.failure, Outgrown):
                self.rebuild(driver)
                continue
            problem = driver.failure or driver.query.exception() or EngineFault(f"query {driver.id} stopped by itself")
            raise self._cause(problem, self._sources[driver.id].values())

    def _cause(self, problem: Exception, sources: Iterable[Source] = ()) -> Exception:
        """The problem itself, or what a look at Java and the sources says about one that does not explain itself."""
        if not isinstance(classify(problem), EngineFault):
            return problem
        # A call that was under way when Java died tells so by chance alone.
        if java_ends(self._spark, _DYING_SECONDS):
            return java_is_gone()
        try:
            for source in sources:
                if isinstance(source, GrowingSource):
                    source.refresh()
                    source.present()
        except SourceFailure as reason:
            return reason
        return problem

    def _look_at_status(self, state: Literal["RUNNING", "STOPPING"]) -> None:
        self.status = self._board.status(state, self.total())

    def _stop_queries(self) -> None:
        self._look_at_status("STOPPING")
        deadline = time.monotonic() + _STOP_SECONDS
        for driver in self.queries:
            driver.stop(deadline)
        for driver in self.queries:
            if driver.failure is not None and not isinstance(driver.failure, StopRequested | Outgrown):
                raise driver.failure
        self._board.stopped()
        self._look_at_status("STOPPING")

    def _abandon_queries(self) -> bool:
        """After a failure: no query of the job goes on when one of them cannot, nor waits for a sink to come back.

        False when one of them did not end, because a sink of it neither answers nor hangs up: it ends with the process.
        """
        self._stop_asked.set()
        left = [driver for driver in self.queries if driver.started] if jvm_is_alive(self._spark) else []
        leaving = [threading.Thread(target=driver.abandon, daemon=True) for driver in left]
        for thread in leaving:
            thread.start()
        deadline = time.monotonic() + _LEAVING_SECONDS
        for thread in leaving:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in leaving)

    def _close(self) -> None:
        for sink in self._sinks:
            sink.close()
        for sources in self._sources.values():
            for source in sources.values():
                if isinstance(source, NotedSource):
                    source.close()

    # --- building ---------------------------------------------------------------------------------------------

    def _build(self, query: QueryPlan) -> QueryFrames:
        plan = self._spec.plan
        checkpoint = self._checkpoint(query)
        checkpoint.prepare()
        sources = self._sources_of(query)
        failpoints = Failpoints.from_environment(query.id, self._spec.attempt)
        trust = Trust(checkpoint.remember)

        def reached(sink: str, point: str) -> None:
            if point == "before_sink_commit":
                trust.settle()
            failpoints.reach(point, checkpoint.last_logged() or 0, sink)

        sinks = [OpenSink(plan.sinks[sink], self._endpoints.sink(sink, partial(reached, sink))) for sink in query.sinks]
        writer = SinkWriter(plan.sink_retry_ms, self._pause)
        self._sinks.extend(opened.sink for opened in sinks)
        open_sinks(sinks, checkpoint, writer)
        watermark = QueryWatermark.of((plan.sources[node], sources[node].partitions) for node in query.sources)
        _grow(watermark, sources)
        progress = Progress(checkpoint, watermark)
        runner = EpochRunner(
            plan=plan,
            query=query,
            side_ports=SidePorts(plan, query, sources, self._spark),
            sinks=sinks,
            writer=writer,
            failpoints=failpoints,
            refused=RefusedRows(self._spark, self._state / _REFUSED / query.id),
            warn=self._send,
            finished=self.finished or progress.watermark.drained,
        )
        # Asking Spark takes milliseconds of every epoch, and only a control plane shows the answer.
        work = TaskTimes(self._spark) if self._spec.control else None
        driver = QueryDriver(runner, progress, checkpoint, sources, failpoints, trust, work, self._clock)
        self.queries.append(driver)
        self._board.queries.append(QueryBoard(query.id, progress, checkpoint))
        self._sources[query.id] = sources
        return self._quickest_frames(query, driver)

    def _checkpoint(self, query: QueryPlan) -> Checkpoint:
        return checkpoint_of(self._spec.plan, query, self._generations.current)

    def frames(self, query: QueryPlan) -> QueryFrames:
        """What a query computes from its sources, whatever its records look like."""
        return self._frames(query, self._sources_of(query), flat=False, guarded=True)

    def _quickest_frames(self, query: QueryPlan, driver: QueryDriver) -> QueryFrames:
        """In trust of what has not been found wrong yet; of times only where an epoch can be called off for them."""
        flat = not driver.checkpoint.knows(Note.LINES_TO_DECODE)
        guarded = driver.checkpoint.knows(Note.EVENTS_AHEAD) or not driver.can_be_called_off
        return self._frames(query, self._sources[query.id], flat, guarded)

    def _frames(self, query: QueryPlan, sources: dict[str, Source], flat: bool, guarded: bool) -> QueryFrames:
        named = not reads_a_node_twice(self._spec.plan, query)
        return QueryFrames(self._spec.plan, query, sources, self._spark, named, flat, guarded)

    def _sources_of(self, query: QueryPlan) -> dict[str, Source]:
        named = not reads_a_node_twice(self._spec.plan, query)
        return {node: self._endpoints.source(node, named) for node in query.sources}

    def rebuild(self, driver: QueryDriver) -> None:
        """Starts a query again that is built for what its sources have now."""
        (query,) = (query for query in self._spec.plan.queries if query.id == driver.id)
        sources = self._sources[query.id]
        for source in sources.values():
            if isinstance(source, GrowingSource):
                source.refresh()
        _grow(driver.progress.watermark, sources)
        driver.start_again(self._quickest_frames(query, driver))

    # --- signals from Spark -----------------------------------------------------------------------------------

    def on_committed(self, done: StreamingQueryProgress) -> None:
        driver = self._driver(str(done.id))
        committed = driver.on_committed(done) if driver else None
        if driver is not None and committed is not None:
            report, measures = committed
            self._board.committed(driver.id, report, measures)
            self._send(report.model_copy(update={"total": self.total()}))
            self._changed.set()

    def on_idle(self, query_id: str) -> None:
        """Taken up by the thread that runs the job, which may have to start the query again."""
        self._idle.add(query_id)
        self._changed.set()

    def on_terminated(self) -> None:
        self._changed.set()

    def _driver(self, query_id: str) -> QueryDriver | None:
        """The driver of a query that has started; a signal can come before `start` has returned."""
        return next((driver for driver in self.queries if driver.started and driver.spark_id == query_id), None)


def checkpoint_of(plan: ExecutionPlan, query: QueryPlan, state: Path) -> Checkpoint:
    """The folder of a query; sources without names of their own stand in it by their places."""
    places = tuple(str(place) for place in range(len(query.sources)))
    return Checkpoint(state / query.id, places if reads_a_node_twice(plan, query) else query.sources)


def _grow(watermark: QueryWatermark, sources: Mapping[str, Source]) -> None:
    for node, source in sources.items():
        if isinstance(source, GrowingSource):
            watermark.grow(node, source.partitions, source.present())
