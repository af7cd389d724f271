"""The whole day of a job with real Spark drivers: watched, killed with its server and without, saved, moved elsewhere.

The generator makes 200 events a second of event time for four keys, so every window of a second holds 50 of each key.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from control_plane.serving import YAML, Server, drivers, kill_drivers
from support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

JOB = """\
tidemark: 1
name: ticks
parallelism: 2
epoch: {interval: 300ms, max_events: 2000}
sources:
  ticks:
    generator: {rate: 200, start: "2026-01-01T00:00:00Z", partitions: 2, columns: {num: n, k: "concat('k', n % 4)"}}
    schema: {num: long, k: string}
    watermark: {delay: 0s}
operators:
  some: {type: filter, input: ticks, where: "num >= 0"}
  per_sec: {type: window, input: some, key: [k], window: {tumbling: 1s}, aggregate: {c: count(), low: min(num)}}
sinks:
  out: {input: per_sec, sqlite: {path: out.db, table: ticks, key: [k, window_start]}}
  bad: {input: ticks.errors, console: {}}
  late: {input: per_sec.late, console: {}}
"""
REAL = [sys.executable, "-m", "tidemark.data_plane"]


class RealServer(Server):
    """With the times and the drivers that users get."""

    def _environment(self) -> dict[str, str]:
        import json

        return {
            **super()._environment(),
            "SCRIPTED_DRIVER": json.dumps(REAL),
            "TIMING": "{}",
            "TIDEMARK_DRIVER_MEMORY": "1g",
        }

    def epoch(self, job_id: str) -> int:
        epoch = self.job(job_id)["epoch"]
        return -1 if epoch is None else int(epoch["id"])

    def wait_beyond(self, job_id: str, epoch: int) -> None:
        """Until a later epoch is committed."""
        wait_until(lambda: self.epoch(job_id) > epoch, 90, interval=0.1)

    def driver(self) -> int:
        """Its process; there is one job at a time."""
        (found,) = wait_until(lambda: drivers(self.folder))
        return found


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "out.db") as connection:
        found = connection.execute("SELECT window_start, k, c, low FROM ticks ORDER BY window_start, low").fetchall()
    connection.close()
    return found


def check_rows(folder: Path) -> int:
    """Every window up to the last holds its four keys with all their events; how many rows there are."""
    found = rows(folder)
    assert [(key, count, low) for _, key, count, low in found] == [
        (f"k{number % 4}", 50, 200 * (number // 4) + number % 4) for number in range(len(found))
    ]
    return len(found)


def test_a_job_outlives_the_death_of_its_driver_and_of_its_server_and_moves(tmp_path: Path) -> None:
    server = RealServer(tmp_path)
    server.start({})
    job_id = None
    try:
        job_id = server.http.post("/jobs", content=JOB, headers=YAML).json()["job_id"]
        server.wait_beyond(job_id, 2)
        _look_closely(server, job_id)
        _kill_the_driver(server, job_id)
        _kill_the_server(server, job_id)
        moved = _move(server, job_id)
        job_id = moved
        server.http.post(f"/jobs/{moved}/stop")
        server.wait_for(moved, "STOPPED", deadline=60)
        assert check_rows(tmp_path) > 100
    finally:
        if job_id is not None:
            server.http.delete(f"/jobs/{job_id}")
            wait_until(lambda: server.job(job_id)["state"] in ("CANCELED", "FAILED"), 60)
        server.end()
        server.http.close()
        kill_drivers(tmp_path)


def _look_closely(server: RealServer, job_id: str) -> None:
    job = server.job(job_id)
    assert (job["state"], job["parallelism"], job["restarts"]) == ("RUNNING", 2, 0)
    assert [part["partition"] for part in job["sources"]["ticks"]["partitions"]] == [0, 1]
    assert job["sinks"][0]["committed_epoch"] >= 2
    assert {operator["id"] for operator in job["operators"]} == {"some", "per_sec"}
    assert job["checkpoint"]["bytes"] > 0
    (chain,) = server.get(f"/jobs/{job_id}/watermark")["queries"]
    assert (chain["query"], chain["source"]) == ("per_sec", "ticks")
    assert chain["waiting"][0]["operator"] == "per_sec"
    state = server.get(f"/jobs/{job_id}/state/per_sec", key="k1")
    assert (state["operator"], state["key"]) == ("per_sec", {"k": "k1"})
    assert state["epoch"] >= 2
    metrics = server.http.get("/metrics").text
    assert 'tidemark_events_total{job="ticks",outcome="accepted",source="ticks"}' in metrics
    assert 'tidemark_epoch_duration_seconds_count{job="ticks"}' in metrics
    assert 'tidemark_sink_commit_seconds_count{job="ticks",sink="out"}' in metrics


def _kill_the_driver(server: RealServer, job_id: str) -> None:
    os.killpg(server.driver(), signal.SIGKILL)
    begun = time.monotonic()
    # What the killed driver had committed may still become known.
    wait_until(lambda: server.job(job_id)["attempt"] == 2, 90)
    server.wait_beyond(job_id, server.epoch(job_id))
    took = time.monotonic() - begun
    job = server.job(job_id)
    assert (job["attempt"], job["restarts"], job["state"]) == (2, 1, "RUNNING")
    assert took < 60, f"{took:.1f} s until the next committed epoch"
    check_rows(server.folder)


def _kill_the_server(server: RealServer, job_id: str) -> None:
    driver = server.driver()
    server.end(signal.SIGKILL)
    held = len(rows(server.folder))
    wait_until(lambda: len(rows(server.folder)) > held, 30)
    begun = time.monotonic()
    server.start()
    wait_until(lambda: server.epoch(job_id) >= 0 and server.job(job_id)["state"] == "RUNNING", 15)
    before = server.epoch(job_id)
    server.wait_beyond(job_id, before)
    assert time.monotonic() - begun < 15
    assert server.job(job_id)["attempt"] == 2
    assert server.driver() == driver


def _move(server: RealServer, job_id: str) -> str:
    """A final savepoint, and a new job that goes on from it with other key groups and a changed filter."""
    savepoint = server.http.delete(f"/jobs/{job_id}", params={"savepoint": True}).json()["savepoint_id"]
    server.wait_for(job_id, "CANCELED", deadline=60)
    found = server.get(f"/savepoints/{savepoint}")
    assert found["state"] == "COMPLETED"
    assert found["bytes"] > 0
    assert found["epoch"] >= server.epoch(job_id), "the driver went on after its final savepoint"
    held = check_rows(server.folder)
    text = JOB.replace("parallelism: 2", "parallelism: 3").replace("num >= 0", "num >= -1")
    made = server.http.post("/jobs", content=text, headers=YAML, params={"from_savepoint": savepoint})
    assert made.status_code == 201, made.text
    moved: str = made.json()["job_id"]
    wait_until(lambda: len(rows(server.folder)) > held, 90)
    job = wait_until(lambda: (found := server.job(moved))["state"] == "RUNNING" and found, 30)
    assert (job["parallelism"], job["attempt"]) == (3, 1)
    return moved
