"""The store: transactions, migrations, attempt numbers, commands."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from tidemark.control_plane.jobs.lifecycle import Desired, State
from tidemark.control_plane.store import access, commands
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.database import Database
from tidemark.control_plane.store.migrations import MIGRATIONS, migrate
from tidemark.control_plane.store.records import JobRecord
from tidemark.control_plane.store.schema import METADATA
from tidemark.errors import Conflict, NotFound, UsageError

NOW = datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "home" / "control.db")


def test_nobody_else_may_read_the_store(database: Database, tmp_path: Path) -> None:
    """Also when a command makes it before the first server does."""
    make_job(database)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "home").iterdir()}
    assert modes == dict.fromkeys(("control.db", "control.db-wal", "control.db-shm"), 0o600)


def make_job(database: Database, job_id: str = "shop-1", name: str = "shop", age: int = 0) -> JobRecord:
    at = NOW - timedelta(seconds=age)
    with database.writing() as connection:
        return store.insert_job(
            connection,
            job_id=job_id,
            name=name,
            state=State.CREATED,
            desired_state=Desired.RUNNING,
            since=at,
            created_at=at,
            definition="",
            plan={},
        )


def test_times_keep_their_microseconds(database: Database) -> None:
    assert make_job(database).since == NOW


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    make_job(database)
    with pytest.raises(Conflict):
        _change_what_cannot_be(database)
    with database.reading() as connection:
        assert store.get_job(connection, "shop-1").restarts == 0


def _change_what_cannot_be(database: Database) -> None:
    with database.writing() as connection:
        job = store.update_job(connection, "shop-1", restarts=7)
        store.transition(connection, job, State.RUNNING, "no", NOW)


def test_a_transition_is_recorded_with_what_came_before(database: Database) -> None:
    job = make_job(database)
    with database.writing() as connection:
        store.transition(connection, job, State.STARTING, "asked", NOW + timedelta(seconds=2))
        (event,) = store.list_events(connection, "shop-1", 10)
    assert (event.from_state, event.to_state, event.duration_ms, event.cause) == ("CREATED", "STARTING", 2000, "asked")


def test_a_name_means_the_live_job_else_the_newest(database: Database) -> None:
    for number in range(3):
        make_job(database, f"shop-{number}", age=10 - number)
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE jobs SET state = 'FAILED' WHERE job_id != 'shop-1'"))
        assert store.get_job(connection, "shop").job_id == "shop-1"
        connection.execute(sa.text("UPDATE jobs SET state = 'CANCELED'"))
        assert store.get_job(connection, "shop").job_id == "shop-2"
        assert store.live_job_named(connection, "shop") is None
        with pytest.raises(NotFound):
            store.get_job(connection, "nobody")


def test_of_many_who_want_the_next_attempt_one_gets_it(database: Database) -> None:
    job = make_job(database)
    taken: list[int] = []

    def take() -> None:
        with database.writing() as connection:
            attempt = store.take_attempt(connection, job, token_hash="h", mark="m", now=NOW)
        if attempt is not None:
            taken.append(attempt.attempt)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [1]


def test_commands_are_numbered_by_job_and_belong_to_an_attempt(database: Database) -> None:
    job = make_job(database)
    with database.writing() as connection:
        asked = [commands.add_command(connection, job, "stop", NOW) for _ in range(3)]
        assert [command.command_id for command in asked] == [1, 2, 3]
        assert [each["id"] for each in commands.commands_after(connection, "shop-1", 0, 1)] == [2, 3]
        assert commands.commands_after(connection, "shop-1", 1, 0) == []
        assert commands.keep_result(connection, asked[0], {"ok": True})
        assert not commands.keep_result(connection, asked[0], {"ok": False})
        kept = commands.get_command(connection, "shop-1", 1)
        assert kept is not None
        assert kept.result == {"ok": True}
        assert [each.command_id for each in commands.unanswered(connection, "shop-1", 0)] == [2, 3]


def test_tokens_end_and_can_be_revoked(database: Database) -> None:
    with database.writing() as connection:
        record, token = access.create_token(connection, "ci", access.Role.VIEWER, NOW, timedelta(days=1))
        assert access.find_token(access.list_tokens(connection), token, NOW) == record
        assert access.find_token(access.list_tokens(connection), token + "x", NOW) is None
        assert access.find_token(access.list_tokens(connection), token, NOW + timedelta(days=1)) is None
        access.revoke_token(connection, record.token_id)
        assert access.find_token(access.list_tokens(connection), token, NOW) is None
        with pytest.raises(NotFound):
            access.revoke_token(connection, record.token_id)


def test_keys_of_requests_are_forgotten_after_a_day(database: Database) -> None:
    with database.writing() as connection:
        access.keep_key(connection, "k", "h", "shop-1", NOW)
        assert access.job_made_by(connection, "k", "h", NOW + timedelta(hours=23)) == "shop-1"
        with pytest.raises(Conflict):
            access.job_made_by(connection, "k", "other", NOW)
        assert access.job_made_by(connection, "k", "h", NOW + timedelta(hours=25)) is None


def test_each_migration_runs_once_and_a_newer_store_is_refused(database: Database) -> None:
    ran: list[str] = []
    more = (*MIGRATIONS, lambda connection: ran.append("second"))
    for _ in range(2):
        with database.writing() as connection:
            assert migrate(connection, more) == len(more)
    assert ran == ["second"]
    with pytest.raises(UsageError, match="versions up to"), database.writing() as connection:
        migrate(connection)


def test_the_migrations_make_the_tables_that_the_code_knows(database: Database) -> None:
    with database.reading() as connection:
        there = sa.inspect(connection)
        for name, table in METADATA.tables.items():
            assert {column["name"] for column in there.get_columns(name)} == set(table.columns.keys())


def test_a_store_survives_being_opened_again(database: Database, tmp_path: Path) -> None:
    make_job(database)
    database.close()
    with Database(tmp_path / "home" / "control.db").reading() as connection:
        assert [job.job_id for job in store.list_jobs(connection)] == ["shop-1"]
