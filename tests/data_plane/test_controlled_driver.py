"""A real driver process under a scripted control plane: what it tells, and that it does what it is asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from data_plane.control_server import ControlServer
from support.repository import ROOT
from support.waiting import wait_until

from tidemark.compiler.compile import compile_job
from tidemark.protocol.control import FENCED_EXIT_CODE, StateGet, TakeSavepoint
from tidemark.protocol.messages import Ended, RunSpec
from tidemark.protocol.status import DriverStatus
from tidemark.savepoints.verify import verify

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """\
tidemark: 1
name: numbers
parallelism: 2
epoch: {interval: 500ms}
sources:
  numbers:
    generator: {rate: 40, partitions: 2, columns: {store: "concat('s', cast(n % 2 as string))", amount: "n"}}
    watermark: {delay: 1s}
operators:
  some: {type: filter, input: numbers, where: "amount >= 0"}
  totals:
    type: aggregate
    input: some
    key: [store]
    aggregate: {orders: count(), mean: avg(amount), last: max(amount)}
sinks:
  out: {input: totals, sqlite: {path: out.db, table: totals, key: [store]}}
"""


def spec(folder: Path, server: ControlServer) -> Path:
    path = folder / "run.json"
    content = RunSpec(
        plan=compile_job(JOB).plan,
        lineage="numbers",
        attempt=1,
        first_started_at=datetime.now(UTC),
        state=str(folder / "state"),
        base=str(folder),
        driver_memory="1g",
        definition=JOB,
        control=server.endpoint,
    )
    path.write_text(content.model_dump_json())
    return path


@contextmanager
def driver(folder: Path, server: ControlServer) -> Iterator[subprocess.Popen[bytes]]:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
    }
    with (folder / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidemark.data_plane", str(spec(folder, server))],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ControlServer]:
    server = ControlServer(tmp_path / "server")
    server.start()
    yield server
    server.stop()


def running(server: ControlServer) -> DriverStatus | None:
    """The status once two epochs have been committed."""
    status = server.status
    done = status is not None and status.queries and (status.queries[0].epoch or 0) >= 2
    return status if done else None


def test_a_driver_tells_how_it_is_and_does_what_it_is_asked(server: ControlServer, tmp_path: Path) -> None:
    with driver(tmp_path, server) as process:
        status = wait_until(lambda: running(server), deadline=90)
        assert status is not None
        _check_status(status)

        server.ask(StateGet(id=1, operator="totals", key="s1"))
        answer = server.result(1)
        assert answer.result is not None, answer.failure
        (entry,) = answer.result["entries"]
        assert entry["values"]["orders"] > 0
        assert entry["values"]["mean"] == pytest.approx((1 + entry["values"]["last"]) / 2)
        assert 0 <= answer.result["age_ms"] < 60_000

        # The server goes away in the middle, and is found again on another port.
        server.stop()
        server.start()
        server.ask(TakeSavepoint(id=2, savepoint_id="live", location=str(tmp_path / "live")))
        taken = server.result(2)
        assert taken.ok, taken.failure
        server.ask(TakeSavepoint(id=3, savepoint_id="last", location=str(tmp_path / "last"), then_stop=True))
        assert server.result(3).ok
        assert process.wait(60) == 0
    ended = [message for message in server.messages.values() if isinstance(message, Ended)]
    assert [message.state for message in ended] == ["STOPPED"]
    live, last = verify(str(tmp_path / "live")), verify(str(tmp_path / "last"))
    assert live.definition == JOB
    assert (live.queries["totals"].epoch or 0) <= (last.queries["totals"].epoch or 0)
    assert ended[0].total.sources["numbers"].events_in == last.queries["totals"].offsets["numbers"]["n"]


def _check_status(status: DriverStatus) -> None:
    assert status.state in ("STARTING", "RUNNING")
    assert status.parallelism == 2
    assert status.watermark is not None
    (query,) = status.queries
    assert query.checkpoint is not None
    assert query.checkpoint.bytes > 0
    operators = {operator.id: operator for operator in status.operators}
    assert operators["totals"].state_rows == 2
    assert (operators["totals"].state_bytes or 0) > 0
    assert 0 < (operators["totals"].busy or 0) <= 1
    assert 0 < (operators["some"].busy or 0) <= 1
    assert operators["totals"].events_per_second > 0
    for partition in status.sources["numbers"].partitions:
        assert partition.offset is not None
        assert partition.end_offset is not None
        assert partition.lag == (partition.end_offset - partition.offset) // 2
    (sink,) = status.sinks
    assert sink.committed_epoch == query.epoch
    assert sink.last_commit_at is not None
    assert sum(counts.events_in for counts in status.total.sources.values()) > 0


def test_a_fenced_driver_ends_at_once(server: ControlServer, tmp_path: Path) -> None:
    server.fence = True
    with driver(tmp_path, server) as process:
        assert process.wait(60) == FENCED_EXIT_CODE
