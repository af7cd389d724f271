"""SIGKILL of a real process in the middle of an epoch, then another attempt: every row once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from connectors import killed_writer
from connectors.arrow_rows import context_for
from connectors.killed_writer import COLUMNS, OPTIONS, ROWS, rows_of, sink_of
from connectors.sink_readers import read_jsonl, read_table
from pyspark.sql import SparkSession

from tidemark.testing.sink_target import FAILPOINTS

pytestmark = pytest.mark.faults


def kill_at(name: str, base: Path, failpoint: str) -> None:
    tests = Path(killed_writer.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, killed_writer.__file__, name, str(base), failpoint]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def seen(name: str, base: Path) -> list[int]:
    rows = read_table(base / "db", "t", COLUMNS) if name == "sqlite" else read_jsonl(base / "out", COLUMNS)
    return sorted(row["n"] for row in rows)


def recover(name: str, base: Path, committed: bool) -> None:
    sink = sink_of(name, context_for(base, OPTIONS[name], COLUMNS, attempt=2))
    assert sink.open() == (1 if committed else 0)
    assert sink.held(1) == (ROWS if committed else None)
    if not committed:
        assert seen(name, base) == list(range(ROWS))
        sink.write(1, rows_of(name, 1))
    sink.close()
    assert seen(name, base) == list(range(2 * ROWS))


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_sqlite_after_a_kill(failpoint: str, tmp_path: Path) -> None:
    kill_at("sqlite", tmp_path, failpoint)
    recover("sqlite", tmp_path, failpoint == "after_sink_commit")


@pytest.mark.slow
def test_files_after_a_kill_between_the_commit_and_the_renames(spark: SparkSession, tmp_path: Path) -> None:
    kill_at("files", tmp_path, "after_sink_commit")
    assert seen("files", tmp_path) == list(range(ROWS))
    recover("files", tmp_path, committed=True)
