"""PostgreSQL that is down, locked, cut off, full, or has changed: what the sink says, and that nothing is twice."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from connectors.arrow_rows import ArrowRows
from connectors.postgres.writing import opened, query, run
from support.cut_connection import relay_to

from tidemark.connectors.postgres import session
from tidemark.connectors.postgres.faults import FAULTS, ROW_ERRORS, postgres_fault, refusal_of
from tidemark.data_plane.epoch.sinks import SinkWriter
from tidemark.errors import Domain, Retry, SinkDenied, SinkMismatch, SinkUnavailable, TidemarkError
from tidemark.record_errors import ROW_MEANINGS, RowError
from tidemark.testing.postgres_server import PostgresServer

ROWS = ArrowRows({"k": ["a", "b"], "n": [1, 2]}, batch_rows=2)


def test_a_server_that_was_killed_is_written_to_after_it_is_back(postgres: PostgresServer, database: str) -> None:
    with closing(opened(database, key=["k"])) as sink:
        sink.write(0, ROWS)
        postgres.kill()
        for _ in range(2):
            with pytest.raises(SinkUnavailable) as caught:
                sink.write(1, ROWS)
        assert caught.value.retry is Retry.BACKOFF
        postgres.start()
        assert sink.held(0) == 2
        assert sink.held(1) is None
        assert sink.write(1, ROWS) == 2


@pytest.mark.parametrize("delivered", [True, False], ids=["answer lost", "request lost"])
def test_a_connection_cut_in_commit_writes_the_epoch_once(
    delivered: bool, postgres: PostgresServer, database: str
) -> None:
    with relay_to(postgres.port) as relay:
        through = database.replace(f":{postgres.port}/", f":{relay.port}/")
        with closing(opened(through)) as sink:
            relay.words, relay.delivered, relay.first = b"COMMIT\0", delivered, b"previous_rows"
            pauses: list[float] = []
            assert SinkWriter(60_000, pauses.append).write(sink, 0, ROWS) == 2
            assert len(pauses) == relay.cuts == 1
    assert query(database, "SELECT k, n FROM t ORDER BY k") == [("a", 1), ("b", 2)]


def test_a_session_ended_by_the_administrator_is_unavailable_for_a_moment(database: str) -> None:
    with closing(opened(database)) as sink:
        run(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^tidemark '")
        with pytest.raises(SinkUnavailable):
            sink.write(0, ROWS)
        assert sink.write(0, ROWS) == 2


def test_a_locked_table_is_unavailable_until_it_is_free(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LOCK_TIMEOUT_SECONDS", 0.1)
    with closing(opened(database)) as sink, psycopg.connect(database) as other:
        other.execute("LOCK TABLE t")
        with pytest.raises(SinkUnavailable, match="lock"):
            sink.write(0, ROWS)
        other.rollback()
        assert sink.write(0, ROWS) == 2


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ("REVOKE INSERT ON t FROM writer", SinkDenied, "permission denied for table t"),
        ("ALTER TABLE t RENAME COLUMN n TO m", SinkMismatch, "does not exist"),
        ("ALTER TABLE t DROP CONSTRAINT t_k_key", SinkMismatch, "no unique or exclusion constraint"),
        ("DROP TABLE t", SinkMismatch, "does not exist"),
    ],
)
def test_what_changed_while_running_is_named_and_not_tried_again(
    change: str, kind: type[TidemarkError], message: str, postgres: PostgresServer, database: str
) -> None:
    run(
        database,
        "DO $$ BEGIN IF to_regrole('writer') IS NULL THEN CREATE ROLE writer LOGIN PASSWORD 'w'; END IF; END $$",
        "GRANT CREATE, USAGE ON SCHEMA public TO writer",
        "CREATE TABLE t (k text CONSTRAINT t_k_key UNIQUE, n bigint)",
        "GRANT SELECT, INSERT, UPDATE ON t TO writer",
    )
    url = f"postgresql://writer:w@127.0.0.1:{postgres.port}/{database.rpartition('/')[2]}"
    with closing(opened(url, key=["k"])) as sink:
        sink.write(0, ROWS)
        run(database, change)
        with pytest.raises(kind, match=message) as caught:
            sink.write(1, ROWS)
        assert (caught.value.domain, caught.value.retry) == (Domain.USER, Retry.NEVER)
        assert caught.value.hint
        assert sink.held(1) is None


def test_a_right_that_is_missing_is_named_at_open(postgres: PostgresServer, database: str) -> None:
    run(database, "CREATE ROLE reader LOGIN PASSWORD 'r'", "CREATE TABLE t (k text, n bigint)",
        "GRANT CREATE, USAGE ON SCHEMA public TO reader", "GRANT SELECT ON t TO reader")  # fmt: skip
    url = f"postgresql://reader:r@127.0.0.1:{postgres.port}/{database.rpartition('/')[2]}"
    with pytest.raises(SinkDenied, match="INSERT"):
        opened(url)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda url: url.replace("postgres:", "postgres:S3CRET", 1), SinkDenied),
        (lambda url: url.rpartition("/")[0] + "/missing", SinkMismatch),
        (lambda url: url.replace("//postgres:", "//nobody:S3CRET"), SinkDenied),
        (lambda url: "user=u password='S3CRET", SinkMismatch),
        (lambda url: "S3CRET of mine", SinkMismatch),
        (lambda url: "postgresql://u:S3CRET@127.0.0.1:1/x", SinkUnavailable),
    ],
    ids=["password", "database", "user", "quote", "nonsense", "nobody there"],
)
def test_a_wrong_address_is_told_apart_and_its_password_never_shown(
    change: object, kind: type[TidemarkError], database: str
) -> None:
    assert callable(change)
    with pytest.raises(kind) as caught:
        opened(change(database))
    assert "S3CRET" not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.step == "out"


class Coded(psycopg.OperationalError):
    def __init__(self, code: str) -> None:
        super().__init__("reason")
        self.sqlstate = code


@pytest.mark.parametrize(("code", "expected"), FAULTS.items())
def test_every_fault_of_the_map_is_known_by_its_code(code: str, expected: tuple[type[TidemarkError], str]) -> None:
    fault = postgres_fault(Coded(code.ljust(5, "0")), "host:5432/db", "out")
    assert type(fault) is expected[0]
    assert fault.hint == expected[1]
    assert refusal_of(Coded(code.ljust(5, "0"))) is None


@pytest.mark.parametrize(("code", "expected"), ROW_ERRORS.items())
def test_every_refusal_of_the_map_is_known_by_its_code(code: str, expected: RowError) -> None:
    refusal = refusal_of(Coded(code.ljust(5, "0")))
    assert refusal is not None
    assert refusal.code is expected


def test_every_code_of_a_row_has_a_meaning() -> None:
    assert set(ROW_MEANINGS) == set(RowError)
    assert set(ROW_ERRORS.values()) == set(RowError) - {RowError.TOO_LARGE}  # which is of Kafka


def test_a_malformed_copy_is_no_fault_of_the_rows() -> None:
    assert refusal_of(Coded("22P04")) is None
