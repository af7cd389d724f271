"""Savepoints in the store: one row from the request to the end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.store.records import JobRecord, SavepointRecord
from tidemark.control_plane.store.schema import SAVEPOINTS
from tidemark.errors import NotFound

IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"


def insert_savepoint(
    connection: sa.Connection, job: JobRecord, savepoint_id: str, location: str, now: datetime
) -> SavepointRecord:
    connection.execute(
        sa.insert(SAVEPOINTS).values(
            savepoint_id=savepoint_id,
            job_id=job.job_id,
            name=job.name,
            attempt=job.attempt,
            state=IN_PROGRESS,
            location=location,
            created_at=now,
        )
    )
    return get_savepoint(connection, savepoint_id)


def get_savepoint(connection: sa.Connection, savepoint_id: str) -> SavepointRecord:
    wanted = sa.select(SAVEPOINTS).where(SAVEPOINTS.c.savepoint_id == savepoint_id)
    row = connection.execute(wanted).mappings().first()
    if row is None:
        raise NotFound(f"there is no savepoint {savepoint_id!r}", hint="GET /jobs/{id}/savepoints lists those of a job")
    return SavepointRecord(**row)


def is_kept_at(connection: sa.Connection, location: str) -> bool:
    return connection.scalar(sa.select(SAVEPOINTS.c.savepoint_id).where(SAVEPOINTS.c.location == location)) is not None


def list_savepoints(connection: sa.Connection, job_id: str | None = None) -> list[SavepointRecord]:
    """The newest first."""
    query = sa.select(SAVEPOINTS).order_by(SAVEPOINTS.c.created_at.desc(), SAVEPOINTS.c.savepoint_id)
    if job_id is not None:
        query = query.where(SAVEPOINTS.c.job_id == job_id)
    return [SavepointRecord(**row) for row in connection.execute(query).mappings()]


def finish_savepoint(connection: sa.Connection, savepoint_id: str, state: str, now: datetime, **fields: Any) -> bool:
    """False when it was finished before."""
    done = connection.execute(
        sa.update(SAVEPOINTS)
        .where(SAVEPOINTS.c.savepoint_id == savepoint_id, SAVEPOINTS.c.state == IN_PROGRESS)
        .values(state=state, completed_at=now, **fields)
    )
    return bool(done.rowcount)


def delete_savepoint(connection: sa.Connection, savepoint_id: str) -> None:
    connection.execute(sa.delete(SAVEPOINTS).where(SAVEPOINTS.c.savepoint_id == savepoint_id))
