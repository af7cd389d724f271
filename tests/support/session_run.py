"""Runs a job to its end in this process and the tests' Spark session, with its real sources and sinks."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Accounting, ConsoleLine, Ended, RunSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
PATIENCE = 120.0


@dataclass(frozen=True)
class Run:
    """What a drained job counted, and what its console sinks showed."""

    total: Accounting
    console: list[Row]


def run_drained(definition: str, folder: Path, spark: SparkSession) -> Run:
    """Relative paths in the job mean `folder`."""
    said: list[Message] = []
    spec = RunSpec(
        plan=compile_job(definition).plan,
        lineage="documented",
        attempt=1,
        first_started_at=datetime.now(UTC),
        state=str(folder / ".state"),
        base=str(folder),
        until_drained=True,
    )
    ended = drained(JobDriver(spec, spark, said.append))
    return Run(ended.total, [json.loads(line.text) for line in said if isinstance(line, ConsoleLine)])


def drained(driver: JobDriver) -> Ended:
    """Runs a job that has to end by itself; one that does not is stopped, and told."""
    given_up = threading.Timer(PATIENCE, driver.ask_stop)
    given_up.start()
    try:
        ended = driver.run()
    finally:
        given_up.cancel()
    assert ended.state == "FINISHED"
    return ended


def table_rows(database: Path, table: str) -> list[Row]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')]


def file_rows(folder: Path) -> list[Row]:
    """The rows in the part files of a jsonl sink."""
    return [json.loads(line) for path in sorted(folder.glob("[!_.]*.jsonl")) for line in path.read_text().splitlines()]
