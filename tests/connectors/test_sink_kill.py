"""SIGKILL of a real process in the middle of an epoch, then another attempt: every row once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from connectors import killed_writer
from connectors.arrow_rows import context_for
from connectors.killed_writer import COLUMNS, OPTIONS, ROWS, rows_of, sink_of
from connectors.sink_readers import read_jsonl, read_postgres, read_table
from pyspark.sql import SparkSession

from tidemark.connectors.postgres import session
from tidemark.testing.sink_target import FAILPOINTS

pytestmark = pytest.mark.faults


def command(name: str, base: Path, failpoint: str, options: dict[str, Any], *more: str) -> list[str]:
    return [sys.executable, killed_writer.__file__, name, str(base), failpoint, json.dumps(options), *more]


def environment(temporary: Path) -> dict[str, str]:
    tests = Path(killed_writer.__file__).parents[1]
    return {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}


def kill_at(name: str, base: Path, failpoint: str, options: dict[str, Any]) -> None:
    words = command(name, base, failpoint, options)
    ended = subprocess.run(words, env=environment(base), capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def seen(name: str, base: Path, options: dict[str, Any]) -> list[int]:
    match name:
        case "sqlite":
            rows = read_table(base / "db", "t", COLUMNS)
        case "postgres":
            rows = read_postgres(options["url"], "t", COLUMNS)
        case _:
            rows = read_jsonl(base / "out", COLUMNS)
    return sorted(row["n"] for row in rows)


def recover(name: str, base: Path, committed: bool, options: dict[str, Any]) -> None:
    sink = sink_of(name, context_for(base, options, COLUMNS, attempt=2))
    assert sink.open() == (1 if committed else 0)
    assert sink.held(1) == (ROWS if committed else None)
    if not committed:
        assert seen(name, base, options) == list(range(ROWS))
        sink.write(1, rows_of(name, 1))
    sink.close()
    assert seen(name, base, options) == list(range(2 * ROWS))


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_sqlite_after_a_kill(failpoint: str, tmp_path: Path) -> None:
    kill_at("sqlite", tmp_path, failpoint, OPTIONS["sqlite"])
    recover("sqlite", tmp_path, failpoint == "after_sink_commit", OPTIONS["sqlite"])


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_postgres_after_a_kill(failpoint: str, tmp_path: Path, database: str) -> None:
    options = {**OPTIONS["postgres"], "url": database}
    kill_at("postgres", tmp_path, failpoint, options)
    recover("postgres", tmp_path, failpoint == "after_sink_commit", options)


@pytest.mark.parametrize("failpoint", ["mid_sink", "before_sink_commit"])
def test_a_frozen_writer_of_postgres_gives_way_to_its_successor_and_is_refused_when_it_wakes(
    failpoint: str, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LOCK_TIMEOUT_SECONDS", 0.3)
    options = {**OPTIONS["postgres"], "url": database}
    words = command("postgres", tmp_path, failpoint, options, "SIGSTOP")
    with subprocess.Popen(words, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as frozen:
        os.waitid(os.P_PID, frozen.pid, os.WSTOPPED)
        recover("postgres", tmp_path, False, options)
        frozen.send_signal(signal.SIGCONT)
        said, _ = frozen.communicate(timeout=60)
    assert said.split() == ["written", "sink_unavailable", "fenced"]
    assert seen("postgres", tmp_path, options) == list(range(2 * ROWS))


@pytest.mark.slow
def test_files_after_a_kill_between_the_commit_and_the_renames(spark: SparkSession, tmp_path: Path) -> None:
    kill_at("files", tmp_path, "after_sink_commit", OPTIONS["files"])
    assert seen("files", tmp_path, OPTIONS["files"]) == list(range(ROWS))
    recover("files", tmp_path, True, OPTIONS["files"])
