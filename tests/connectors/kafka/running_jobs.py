"""Jobs on a real broker, run by a `JobDriver` in this process on the shared Spark session."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession
from support.session_run import drained
from support.waiting import wait_until

from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.report.classify import classify
from tidemark.errors import TidemarkError
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Ended, EpochCommitted, RunSpec, SourceStatus

PATIENCE = 60.0


@dataclass
class KafkaJob:
    """One job in one folder; `files` sinks write below it."""

    spark: SparkSession
    folder: Path
    text: str
    attempt: int = 0

    def driver(self, send: Any = lambda _: None, *, drain: bool = False) -> JobDriver:
        self.attempt += 1
        spec = RunSpec(
            plan=compile_job(self.text).plan,
            lineage=self.folder.name,
            attempt=self.attempt,
            first_started_at=datetime(2026, 1, 1, tzinfo=UTC),
            state=str(self.folder / "state"),
            base=str(self.folder),
            until_drained=drain,
        )
        return JobDriver(spec, self.spark, send)

    def drain(self) -> Ended:
        return drained(self.driver(drain=True))

    def running(self) -> Running:
        return Running(self)

    def rows(self, sink: str) -> list[dict[str, Any]]:
        parts = sorted((self.folder / sink).glob("part-*"))
        return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


@dataclass
class Running:
    """A job that runs until the block ends, or until it fails."""

    job: KafkaJob
    messages: list[Message] = field(default_factory=list)
    failure: TidemarkError | None = None

    def __enter__(self) -> Self:
        self._driver = self.job.driver(self.messages.append)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._driver.ask_stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._driver.run()
        except Exception as problem:
            self.failure = classify(problem)

    def wait_for_rows(self, sink: str, count: int) -> list[dict[str, Any]]:
        wait_until(lambda: self.failure or len(self.job.rows(sink)) >= count, PATIENCE)
        assert self.failure is None, self.failure
        return self.job.rows(sink)

    def wait_for_failure(self) -> TidemarkError:
        wait_until(lambda: self.failure, PATIENCE)
        assert self.failure is not None
        return self.failure

    def epochs(self) -> list[EpochCommitted]:
        return [message for message in self.messages if isinstance(message, EpochCommitted)]

    def status(self, source: str) -> SourceStatus:
        return self.epochs()[-1].sources[source]
