"""A job under test, driven step by step: the real engine with scripted sources, captured sinks and no clock."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tidemark.compiler.compile import Compiled, compile_job
from tidemark.compiler.definition.job import JobDefinition
from tidemark.compiler.definition.model import instant
from tidemark.compiler.plan.plan import EpochPolicy, ExecutionPlan
from tidemark.data_plane.epoch.progress import to_datetime
from tidemark.data_plane.epoch.trust import Outgrown
from tidemark.data_plane.epoch.watermark import QueryWatermark
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.query_driver import QueryDriver
from tidemark.data_plane.report.classify import classify
from tidemark.data_plane.session import create_session
from tidemark.job import Job
from tidemark.protocol.messages import Accounting, RunSpec
from tidemark.testing import captured_sink, scripted_source
from tidemark.testing.captured_sink import CapturedSink, Row, captured, captured_rows
from tidemark.testing.scripted_source import Event, Feed, ScriptedSource, scripted
from tidemark.watermarks import smallest_watermark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHUFFLES = "spark.sql.shuffle.partitions"
_STOP_SECONDS = 60.0
_PARALLELISM = 2


class Harness:
    """Every method returns when the engine has nothing left to do; a job that fails raises its TidemarkError.

        with Harness(job) as test:
            test.epoch({"orders": [{"store": "s1", "ts": "2026-01-01T00:00:10Z"}]})
            test.drain()
            assert test.rows("out") == [...]

    An event is a mapping of its columns. Beside them it may carry the record around it: `_partition` (0 unless
    given), `_key`, `_event_time` (for a source that names no column for it), or `_raw`, the whole record as text or
    bytes in place of columns.
    """

    def __init__(
        self,
        job: str | Job | JobDefinition | Compiled,
        spark: SparkSession | None = None,
        parallelism: int | None = None,
        folder: Path | None = None,
        attempt: int = 1,
    ) -> None:
        """Starts the job. With a `folder`, whatever is there is taken up, and stays; `attempt` counts its starts."""
        compiled = job if isinstance(job, Compiled) else compile_job(job.to_yaml() if isinstance(job, Job) else job)
        self._parallelism = parallelism or compiled.plan.parallelism or _PARALLELISM
        self._spark = spark or create_session("tidemark-tests", driver_memory="1g", parallelism=self._parallelism)
        self._own_folder = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.plan = _under_test(compiled.plan, self._folder)
        self._feeds = {id_: Feed(source) for id_, source in self.plan.sources.items()}
        self._attempt = attempt
        self._step = 0
        try:
            self._driver = self._start()
        except BaseException:
            self._clean()
            raise

    # --- steps ------------------------------------------------------------------------------------------------

    def epoch(self, events: Mapping[str, Iterable[Event]]) -> None:
        """Gives the job these events, by source, as one epoch of each query."""
        self._step += 1
        hidden = [(self._feeds[id_], self._feeds[id_].prepare(self._step, items)) for id_, items in events.items()]
        with ExitStack() as held:
            for query in self._driver.queries:
                held.enter_context(query.paused())
            for feed, path in hidden:
                if path is not None:
                    feed.publish(path)
        self._settle()

    def pass_over(self, events: Mapping[str, Iterable[Event]]) -> None:
        """Counts an epoch that an earlier start has been given, so that offsets go on where they were."""
        self._step += 1
        for id_, items in events.items():
            self._feeds[id_].pass_over(items)

    def advance_watermark(self, source: str, to: datetime | str) -> None:
        """Moves every partition of a source to this watermark, as if events of that time had come."""
        moment = instant(to) if isinstance(to, str) else to
        newest = (moment - _EPOCH) // timedelta(microseconds=1) + self.plan.sources[source].watermark.delay_ms * 1000

        def change(watermark: QueryWatermark) -> None:
            if source in watermark.sources:
                watermark.saw(source, dict.fromkeys(range(len(watermark.sources[source].partitions)), newest))

        self._move(change)

    def advance_time(self, seconds: float) -> None:
        """Lets idle time pass."""
        self._move(lambda watermark: watermark.waited(round(seconds * 1_000_000)))

    def drain(self) -> None:
        """Moves the watermark to the end of time, so that every window closes."""
        self._move(QueryWatermark.drain)

    def restart(self) -> None:
        """Stops the job and starts it again from its state, as a new attempt."""
        self._stop()
        self._attempt += 1
        self._driver = self._start()

    # --- what came out ----------------------------------------------------------------------------------------

    def rows(self, sink: str) -> list[Row]:
        """What a reader of the sink would see: all rows, or the last of each key for a table with a key."""
        return captured_rows(self.plan.sinks[sink])

    def accounting(self) -> Accounting:
        return self._driver.total()

    def watermark(self, query: str | None = None) -> datetime | None:
        """The watermark of a query, or the smallest of all; None while there is none."""
        asked = (driver for driver in self._driver.queries if query in (None, driver.id))
        return to_datetime(smallest_watermark(driver.progress.watermark.value for driver in asked))

    # --- the job ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        try:
            self._stop()
        finally:
            self._clean()

    def _start(self) -> JobDriver:
        spec = RunSpec(
            plan=self.plan,
            lineage="test",
            attempt=self._attempt,
            first_started_at=_EPOCH,
            state=str(self._folder / "state"),
            base=str(self._folder),
        )
        driver = JobDriver(
            spec,
            self._spark,
            send=lambda _: None,
            source_types={scripted_source.CONNECTOR: ScriptedSource},
            sink_types={captured_sink.CONNECTOR: CapturedSink},
            clock=lambda: 0.0,
        )
        self._driver = driver
        before = self._spark.conf.get(_SHUFFLES)
        self._spark.conf.set(_SHUFFLES, str(self._parallelism))
        try:
            driver.start()
            self._settle()
        except (PySparkException, Py4JError) as problem:
            self._stop()
            raise classify(problem) from problem
        except BaseException:
            self._stop()
            raise
        finally:
            self._spark.conf.set(_SHUFFLES, before or "")
        return driver

    def _stop(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        for query in self._driver.queries:
            if query.started:
                query.stop(deadline)

    def _clean(self) -> None:
        if self._own_folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _move(self, change: Callable[[QueryWatermark], None]) -> None:
        for query in self._driver.queries:
            query.move(change)
        self._settle()

    def _settle(self) -> None:
        for query in self._driver.queries:
            self._wait(query)

    def _wait(self, query: QueryDriver) -> None:
        while True:
            try:
                query.query.processAllAvailable()
                return
            except (PySparkException, Py4JError) as problem:
                if not isinstance(query.failure, Outgrown):
                    failure = query.failure or problem
                    raise classify(failure) from failure
                self._driver.rebuild(query)


def _under_test(plan: ExecutionPlan, folder: Path) -> ExecutionPlan:
    """The plan with nothing real at its ends."""
    return plan.model_copy(
        update={
            "epoch": EpochPolicy(),
            "sources": {id_: scripted(source, folder / "in" / id_) for id_, source in plan.sources.items()},
            "sinks": {id_: captured(sink, folder / "out" / id_) for id_, sink in plan.sinks.items()},
        }
    )
