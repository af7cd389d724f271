"""Jobs run by a `JobDriver` in this process, on the shared Spark session: for tests of what it leaves on disk."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.data_plane.job_driver import JobDriver
from tidemark.protocol.message import Message
from tidemark.protocol.messages import EpochCommitted, RunSpec

QUERY = "per_minute"
_JOB = """\
tidemark: 1
name: shop
sources:
  orders:
    files: {{path: {input}, format: jsonl, max_files_per_epoch: 1}}
    schema: {{store: string, t: timestamp(s)}}
    event_time: t
    watermark: {{delay: 0s, idle_timeout: 10m}}
operators:
  per_minute: {{type: window, input: orders, key: [store], window: {{tumbling: 1m}}, aggregate: {{orders: count()}}}}
sinks:
  out: {{input: per_minute, sqlite: {{path: out.db, table: out, mode: append}}}}
  copy: {{input: per_minute, files: {{path: copy, format: jsonl}}}}
  late: {{input: per_minute.late, files: {{path: late, format: jsonl}}}}
  bad: {{input: orders.errors, files: {{path: bad, format: jsonl}}}}
"""


def plan_of(input_folder: Path) -> ExecutionPlan:
    return compile_job(_JOB.format(input=input_folder)).plan


def write_input(folder: Path, files: int) -> None:
    """A file for each minute; every third order of a file belongs to the minute before."""
    folder.mkdir()
    for number in range(files):
        orders = [{"store": f"s{i % 2}", "t": number * 60 + i - (60 if i % 3 == 0 else 0)} for i in range(9)]
        path = folder / f"{number:03}.jsonl"
        path.write_text("".join(f"{json.dumps(order)}\n" for order in orders))
        os.utime(path, (1_700_000_000 + number,) * 2)


@dataclass
class Shop:
    """One job in one folder; the folder may be a copy of another, since sinks and state are relative to it."""

    spark: SparkSession
    plan: ExecutionPlan
    folder: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "state" / QUERY

    def spec(self, attempt: int, *, drain: bool = True) -> RunSpec:
        return RunSpec(
            plan=self.plan,
            lineage="lineage",
            attempt=attempt,
            first_started_at=datetime(2026, 1, 1, tzinfo=UTC),
            state=str(self.folder / "state"),
            base=str(self.folder),
            until_drained=drain,
        )

    def drain(self, attempt: int) -> str:
        return JobDriver(self.spec(attempt), self.spark, lambda _: None).run().state

    def run_until(self, epoch: int, attempt: int) -> str:
        """Stops at the end of that epoch, or of one soon after it."""

        def hear(message: Message) -> None:
            if isinstance(message, EpochCommitted) and message.epoch >= epoch:
                driver.ask_stop()

        driver = JobDriver(self.spec(attempt, drain=False), self.spark, hear)
        return driver.run().state

    def contents(self) -> dict[str, list[str]]:
        return {"out": self._table(), "copy": self._files("copy"), "late": self._late()}

    def _table(self) -> list[str]:
        connection = sqlite3.connect(self.folder / "out.db")
        try:
            return sorted(json.dumps(row) for row in connection.execute("SELECT * FROM out"))
        finally:
            connection.close()

    def _files(self, sink: str) -> list[str]:
        return sorted(line for path in (self.folder / sink).glob("part-*") for line in path.read_text().splitlines())

    def _late(self) -> list[str]:
        rows: list[dict[str, Any]] = [json.loads(line) for line in self._files("late")]
        return sorted(json.dumps({name: row[name] for name in ("store", "t", "window_start")}) for row in rows)
