"""Jobs, their attempts and their history in the store. A job's state changes through `transition` alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.jobs.lifecycle import TERMINAL, State, check_transition
from tidemark.control_plane.store.records import AttemptRecord, EventRecord, JobRecord
from tidemark.control_plane.store.schema import ATTEMPTS, COMMANDS, EVENTS, JOBS
from tidemark.errors import NotFound


def insert_job(connection: sa.Connection, **fields: Any) -> JobRecord:
    connection.execute(sa.insert(JOBS).values(failures=[], **fields))
    return get_job(connection, fields["job_id"])


def get_job(connection: sa.Connection, job_id: str) -> JobRecord:
    """By id, else the newest job of that name, a live one first. Raises NotFound."""
    found = find_job(connection, job_id)
    if found is not None:
        return found
    row = _newest_of_name(connection, job_id)
    if row is None:
        raise NotFound(f"there is no job {job_id!r}", hint="GET /jobs lists them")
    return JobRecord.of(row)


def find_job(connection: sa.Connection, job_id: str) -> JobRecord | None:
    row = connection.execute(sa.select(JOBS).where(JOBS.c.job_id == job_id)).mappings().first()
    return None if row is None else JobRecord.of(row)


def _newest_of_name(connection: sa.Connection, name: str) -> sa.RowMapping | None:
    ended = sa.case((JOBS.c.state.in_(TERMINAL), 1), else_=0)
    named = sa.select(JOBS).where(JOBS.c.name == name).order_by(ended, JOBS.c.created_at.desc()).limit(1)
    return connection.execute(named).mappings().first()


def live_job_named(connection: sa.Connection, name: str) -> JobRecord | None:
    row = _newest_of_name(connection, name)
    return None if row is None or row["state"] in TERMINAL else JobRecord.of(row)


def list_jobs(
    connection: sa.Connection,
    states: Sequence[State] = (),
    limit: int | None = None,
    before: tuple[datetime, str] | None = None,
) -> list[JobRecord]:
    """The newest first; `before` is the creation time and id of the last job of the page before."""
    query = sa.select(JOBS).order_by(JOBS.c.created_at.desc(), JOBS.c.job_id.desc())
    if states:
        query = query.where(JOBS.c.state.in_(states))
    if before is not None:
        at, job_id = before
        query = query.where(sa.or_(JOBS.c.created_at < at, sa.and_(JOBS.c.created_at == at, JOBS.c.job_id < job_id)))
    return [JobRecord.of(row) for row in connection.execute(query.limit(limit)).mappings()]


def count_live(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.count()).where(JOBS.c.state.not_in(TERMINAL))) or 0


def update_job(connection: sa.Connection, job_id: str, **fields: Any) -> JobRecord:
    """Everything but the state."""
    assert "state" not in fields
    connection.execute(sa.update(JOBS).where(JOBS.c.job_id == job_id).values(**fields))
    return get_job(connection, job_id)


def transition(connection: sa.Connection, job: JobRecord, new: State, cause: str, now: datetime) -> JobRecord:
    """Moves the job on and records why, and how long the state before lasted. Raises Conflict when it may not."""
    check_transition(job.name, job.state, new)
    connection.execute(sa.update(JOBS).where(JOBS.c.job_id == job.job_id).values(state=new, since=now))
    duration = (now - job.since) // timedelta(milliseconds=1)
    add_event(
        connection, job, "transition", cause, now, from_state=job.state, to_state=new, duration_ms=max(duration, 0)
    )
    return get_job(connection, job.job_id)


def delete_job(connection: sa.Connection, job_id: str) -> None:
    for table in (COMMANDS, EVENTS, ATTEMPTS, JOBS):
        connection.execute(sa.delete(table).where(table.c.job_id == job_id))


def add_event(connection: sa.Connection, job: JobRecord, kind: str, cause: str, now: datetime, **fields: Any) -> None:
    values = {"job_id": job.job_id, "at": now, "kind": kind, "cause": cause, "attempt": job.attempt, **fields}
    connection.execute(sa.insert(EVENTS).values(**values))


def list_events(connection: sa.Connection, job_id: str, limit: int, before: int | None = None) -> list[EventRecord]:
    """The newest first."""
    query = sa.select(EVENTS).where(EVENTS.c.job_id == job_id).order_by(EVENTS.c.event_id.desc()).limit(limit)
    if before is not None:
        query = query.where(EVENTS.c.event_id < before)
    return [EventRecord(**row) for row in connection.execute(query).mappings()]


def count_recoveries(connection: sa.Connection, job_ids: Sequence[str], since: datetime) -> dict[str, int]:
    """How often each of the jobs had to recover after `since`."""
    query = (
        sa.select(EVENTS.c.job_id, sa.func.count())
        .where(EVENTS.c.job_id.in_(job_ids), EVENTS.c.kind == "crash", EVENTS.c.at >= since)
        .group_by(EVENTS.c.job_id)
    )
    return {str(row[0]): int(row[1]) for row in connection.execute(query)}


def take_attempt(
    connection: sa.Connection, job: JobRecord, *, token_hash: str, mark: str, now: datetime
) -> AttemptRecord | None:
    """The next attempt, by compare-and-set on the last one; None when somebody else took it first."""
    number = job.attempt + 1
    taken = connection.execute(
        sa.update(JOBS).where(JOBS.c.job_id == job.job_id, JOBS.c.attempt == job.attempt).values(attempt=number)
    )
    if taken.rowcount != 1:
        return None
    connection.execute(
        sa.insert(ATTEMPTS).values(job_id=job.job_id, attempt=number, token_hash=token_hash, mark=mark, launched_at=now)
    )
    return get_attempt(connection, job.job_id, number)


def get_attempt(connection: sa.Connection, job_id: str, attempt: int) -> AttemptRecord | None:
    wanted = sa.select(ATTEMPTS).where(ATTEMPTS.c.job_id == job_id, ATTEMPTS.c.attempt == attempt)
    row = connection.execute(wanted).mappings().first()
    return None if row is None else AttemptRecord(**row)


def update_attempt(connection: sa.Connection, job_id: str, attempt: int, **fields: Any) -> None:
    connection.execute(
        sa.update(ATTEMPTS).where(ATTEMPTS.c.job_id == job_id, ATTEMPTS.c.attempt == attempt).values(**fields)
    )
