"""Commands for drivers, and what became of them. A command belongs to one attempt and dies with it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.store.records import CommandRecord, JobRecord
from tidemark.control_plane.store.schema import COMMANDS


def add_command(connection: sa.Connection, job: JobRecord, kind: str, now: datetime, **fields: Any) -> CommandRecord:
    last = connection.scalar(sa.select(sa.func.max(COMMANDS.c.command_id)).where(COMMANDS.c.job_id == job.job_id))
    number = (last or 0) + 1
    made = CommandRecord(job.job_id, number, job.attempt, {"kind": kind, "id": number, **fields}, now, None)
    connection.execute(sa.insert(COMMANDS).values(**vars(made)))
    return made


def commands_after(connection: sa.Connection, job_id: str, attempt: int, after: int) -> list[dict[str, Any]]:
    query = (
        sa.select(COMMANDS.c.body)
        .where(COMMANDS.c.job_id == job_id, COMMANDS.c.attempt == attempt, COMMANDS.c.command_id > after)
        .where(COMMANDS.c.result.is_(None))
        .order_by(COMMANDS.c.command_id)
    )
    return list(connection.scalars(query))


def get_command(connection: sa.Connection, job_id: str, command_id: int) -> CommandRecord | None:
    wanted = sa.select(COMMANDS).where(COMMANDS.c.job_id == job_id, COMMANDS.c.command_id == command_id)
    row = connection.execute(wanted).mappings().first()
    return None if row is None else CommandRecord(**row)


def keep_result(connection: sa.Connection, command: CommandRecord, result: dict[str, Any]) -> bool:
    """False when a result was there already: the first one counts."""
    kept = connection.execute(
        sa.update(COMMANDS)
        .where(COMMANDS.c.job_id == command.job_id, COMMANDS.c.command_id == command.command_id)
        .where(COMMANDS.c.result.is_(None))
        .values(result=result)
    )
    return bool(kept.rowcount)


def unanswered(connection: sa.Connection, job_id: str, attempt: int) -> list[CommandRecord]:
    query = sa.select(COMMANDS).where(
        COMMANDS.c.job_id == job_id, COMMANDS.c.attempt == attempt, COMMANDS.c.result.is_(None)
    )
    return [CommandRecord(**row) for row in connection.execute(query).mappings()]
