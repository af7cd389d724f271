"""The job of the recovery tests, run in this process: saved, restored elsewhere and spread anew while it has work."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from faults import workload
from pyspark.sql import SparkSession

from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.state.prepare import prepare_state
from tidemark.protocol.message import Message
from tidemark.protocol.messages import EpochCommitted, RunSpec
from tidemark.protocol.start import Prepare

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class MovingJob:
    """One job with its sinks and its state in one folder, and its input somewhere else."""

    spark: SparkSession
    input: Path
    folder: Path
    lineage: str = "first"
    attempt: int = 0
    text: str = workload.JOB

    @property
    def definition(self) -> str:
        return self.text.replace("path: in,", f"path: {self.input},")

    def spec(self, *, drain: bool = False, prepare: Prepare | None = None) -> RunSpec:
        return RunSpec(
            plan=compile_job(self.definition).plan,
            lineage=self.lineage,
            attempt=self.attempt,
            first_started_at=STARTED,
            state=str(self.folder / "state"),
            base=str(self.folder),
            until_drained=drain,
            definition=self.definition,
            prepare=prepare,
        )

    def run(
        self,
        *,
        drain: bool = False,
        prepare: Prepare | None = None,
        on_epoch: Callable[[EpochCommitted, JobDriver], None] = lambda message, driver: None,
    ) -> list[Message]:
        """One start, from preparation to its end; `on_epoch` may ask for a stop."""
        self.attempt += 1
        heard: list[Message] = []

        def hear(message: Message) -> None:
            heard.append(message)
            if isinstance(message, EpochCommitted):
                on_epoch(message, driver)

        spec = self.spec(drain=drain, prepare=prepare)
        prepare_state(spec, self.spark, heard.append)
        driver = JobDriver(spec, self.spark, hear)
        driver.run()
        return heard

    def run_until(self, epoch: int, prepare: Prepare | None = None, query: str = "per_minute") -> list[Message]:
        """Until a query has committed that epoch, or one soon after it; `per_minute` is the slower one."""

        def watch(message: EpochCommitted, driver: JobDriver) -> None:
            if message.query == query and message.epoch >= epoch:
                driver.ask_stop()

        return self.run(prepare=prepare, on_epoch=watch)

    def contents(self) -> dict[str, list[str]]:
        """What the sinks hold, without what depends on how the input is cut into epochs."""
        return {sink: sorted(map(_without_epoch, rows)) for sink, rows in workload.contents(self.folder).items()}

    def copied_to(self, folder: Path) -> MovingJob:
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)


def _without_epoch(row: str) -> str:
    kept = {name: value for name, value in json.loads(row).items() if name not in ("watermark", "lateness_ms")}
    return json.dumps(kept, sort_keys=True)
