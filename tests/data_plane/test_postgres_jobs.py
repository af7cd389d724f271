"""Whole jobs into a real PostgreSQL: refused rows and dead letters arrive once, through crashes and outages."""

from __future__ import annotations

import base64
import threading
import time
from pathlib import Path

import pytest
from connectors.postgres.writing import query, run
from data_plane.postgres_shop import JOB, POISON, Shop, write_orders
from pyspark.sql import SparkSession
from support.waiting import wait_until

from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.data_plane import job_driver
from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.job_driver import JobDriver
from tidemark.errors import Retry, SinkDenied, SinkUnavailable
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Accounting, Started
from tidemark.testing.postgres_server import PostgresServer
from tidemark.testing.sink_target import FAILPOINTS

pytestmark = pytest.mark.faults
CHECKED = (
    "CREATE TABLE sales.orders "
    "(id text PRIMARY KEY, store text, amount bigint CHECK (amount < 100), t timestamptz, noted text DEFAULT 'now')"
)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("PG", database)
    run(database, "CREATE SCHEMA sales", CHECKED)
    write_orders(tmp_path / "in")
    return Shop(spark, tmp_path)


def assert_complete(shop: Shop, database: str) -> None:
    """Every order is in its table or refused, each once, and every dead letter says where it came from."""
    orders = query(database, "SELECT id, amount FROM sales.orders ORDER BY id")
    assert orders == [("a", 6), ("c", 7), ("e", 9), ("f", 1), ("g", 3)]
    refused = query(database, "SELECT id, amount, _error_code, _event_id, _source, _event_time FROM refused")
    assert [row[:5] for row in refused] == [("b", 100, "check_failed", "b", "orders")]
    assert sorted((row["id"], row["amount"], row["_error_code"]) for row in shop.files("refused")) == [
        ("b", 100, "check_failed"),
        ("d", 2000, "check_failed"),
    ]
    totals = query(database, "SELECT store, extract(epoch FROM window_start)::int, orders, total::int FROM totals"
                             " ORDER BY 1, 2")  # fmt: skip
    assert totals == [("s1", 0, 2, 105), ("s1", 60, 2, 2006), ("s2", 0, 1, 7), ("s2", 60, 1, 9), ("s2", 120, 1, 1)]
    assert query(database, "SELECT id, _event_id, _source, lateness_ms > 0 FROM late") == [("g", "g", "orders", True)]
    assert query(database, "SELECT _raw, _error_code, _source FROM bad") == [(POISON, "invalid_utf8", "orders")]
    assert [base64.b64decode(row["_raw"]) for row in shop.files("bad")] == [POISON]


def assert_accounted(total: Accounting) -> None:
    source = total.sources["orders"]
    assert (source.events_in, source.accepted, source.errors) == (9, 8, 1)
    assert (total.sinks["out"].rows, total.sinks["out"].refused) == (6, 2)
    assert (total.operators["cheap"].rows_in, total.operators["cheap"].filtered) == (2, 1)
    assert {sink: counts.rows for sink, counts in total.sinks.items() if sink != "out"} == {
        "totals": 5, "late": 1, "bad": 1, "bad_files": 1, "refused": 1, "refused_files": 2,
    }  # fmt: skip


class Crash(Exception):
    """Where a process would have been killed."""


def test_refused_rows_and_dead_letters_survive_a_crash_between_a_sink_and_its_errors(
    shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    struck: list[str] = []

    def strike(self: Failpoints, point: str, epoch: int, sink: str | None = None) -> None:
        if (self._query, point, epoch, struck) == ("orders", "between_sinks", 0, []):
            struck.append(point)
            raise Crash(point)

    monkeypatch.setattr(Failpoints, "reach", strike)
    with pytest.raises(Crash):
        shop.drain()
    assert shop.files("refused") == []
    ended = shop.drain()
    assert struck == ["between_sinks"]
    assert_complete(shop, database)
    assert_accounted(ended.total)
    assert shop.warnings() == []


def test_a_server_killed_in_commit_is_waited_for_and_everything_is_there_once(
    shop: Shop, database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two queries of the job find out each by itself; the second pause of one of them brings the server back."""
    pauses: list[float] = []
    killed: list[str] = []
    turn = threading.Lock()

    def kill(self: Failpoints, point: str, epoch: int, sink: str | None = None) -> None:
        with turn:
            if point in FAILPOINTS and point not in killed and epoch == 1:
                killed.append(point)
                postgres.kill()

    def come_back(self: JobDriver, seconds: float) -> None:
        with turn:
            pauses.append(seconds)
            if len(pauses) % 2 == 0:
                postgres.kill()
                postgres.start()

    monkeypatch.setattr(Failpoints, "reach", kill)
    monkeypatch.setattr(JobDriver, "_pause", come_back)
    try:
        ended = shop.drain()
    finally:
        postgres.kill()
        postgres.start()
    assert sorted(killed) == sorted(FAILPOINTS)
    assert len(pauses) >= 4
    assert_complete(shop, database)
    assert_accounted(ended.total)


def test_refused_rows_that_nothing_reads_are_counted_and_warned_about_once(
    shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for line in JOB.splitlines() if not line.startswith(("  cheap:", "  refused"))]
    shop.definition = "\n".join(lines)
    ended = shop.drain()
    assert (ended.total.sinks["out"].rows, ended.total.sinks["out"].refused) == (6, 2)
    assert [(warned.code, warned.step) for warned in shop.warnings()] == [("rows_refused", "out")]
    assert query(database, "SELECT count(*) FROM sales._tidemark_refused") == [(0,)]


def test_what_goes_wrong_for_good_while_running_fails_the_job_by_name_and_loses_nothing(
    shop: Shop, database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(
        database,
        "DROP ROLE IF EXISTS clerk",
        "CREATE ROLE clerk LOGIN PASSWORD 'c'",
        "GRANT CREATE, USAGE ON SCHEMA public, sales TO clerk",
        "GRANT SELECT, INSERT, UPDATE ON sales.orders TO clerk",
    )
    monkeypatch.setenv("PG", f"postgresql://clerk:c@127.0.0.1:{postgres.port}/{database.rpartition('/')[2]}")

    def revoke(message: Message) -> None:
        if isinstance(message, Started):
            run(database, "REVOKE INSERT ON sales.orders FROM clerk")

    with pytest.raises(SinkDenied) as caught:
        shop.drain(revoke)
    assert (caught.value.retry, caught.value.step) == (Retry.NEVER, "out")
    assert caught.value.hint
    run(database, "GRANT INSERT ON sales.orders TO clerk")
    assert shop.drain().state == "FINISHED"
    assert_complete(shop, database)
    run(database, "DROP OWNED BY clerk CASCADE", "DROP ROLE clerk")


def test_an_outage_longer_than_sink_retry_fails_the_job_and_the_next_start_goes_on(
    shop: Shop, database: str, postgres: PostgresServer
) -> None:
    shop.definition = JOB.replace("parallelism: 2\n", "parallelism: 2\nsink_retry: 1s\n")
    postgres.kill()
    try:
        with pytest.raises(SinkUnavailable) as caught:
            shop.drain()
    finally:
        postgres.start()
    assert caught.value.step in ("out", "bad", "refused", "refused_files")
    assert shop.drain().state == "FINISHED"
    assert_complete(shop, database)


def test_a_job_that_has_failed_does_not_wait_for_the_outage_of_another_query_to_end(
    shop: Shop, database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sink_retry` is five minutes, which the new attempt would have to wait for."""
    waiting = threading.Event()
    pause = JobDriver._pause

    def note_pause(self: JobDriver, seconds: float) -> None:
        waiting.set()
        pause(self, seconds)

    def strike(self: Failpoints, point: str, epoch: int, sink: str | None = None) -> None:
        if self._query == "orders" and point == "after_log":
            assert waiting.wait(60)
            raise Crash(point)

    monkeypatch.setattr(JobDriver, "_pause", note_pause)
    monkeypatch.setattr(Failpoints, "reach", strike)
    began = time.monotonic()
    try:
        with pytest.raises(Crash):
            shop.drain(lambda message: postgres.kill() if isinstance(message, Started) else None)
    finally:
        postgres.start()
    assert time.monotonic() - began < 60
    monkeypatch.undo()
    monkeypatch.setenv("PG", database)
    assert shop.drain().state == "FINISHED"
    assert_complete(shop, database)


def test_a_job_that_has_failed_does_not_wait_for_a_server_that_says_nothing(
    shop: Shop, database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    held = PostgresSink.held

    def note_asked(self: PostgresSink, epoch: int) -> int | None:
        asked.set()
        return held(self, epoch)

    def strike(self: Failpoints, point: str, epoch: int, sink: str | None = None) -> None:
        if self._query == "orders" and point == "after_log":
            assert asked.wait(60)
            raise Crash(point)

    monkeypatch.setattr(PostgresSink, "held", note_asked)
    monkeypatch.setattr(Failpoints, "reach", strike)
    monkeypatch.setattr(job_driver, "_LEAVING_SECONDS", 2.0)
    try:
        with pytest.raises(Crash):
            shop.drain(lambda message: postgres.freeze() if isinstance(message, Started) else None)
        assert [query.name for query in shop.spark.streams.active] == ["per_minute"]
    finally:
        postgres.thaw()
    wait_until(lambda: not shop.spark.streams.active)
    monkeypatch.undo()
    monkeypatch.setenv("PG", database)
    assert shop.drain().state == "FINISHED"
    assert_complete(shop, database)
