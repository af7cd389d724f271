"""The rows of the store as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.jobs.lifecycle import Desired, State


@dataclass(frozen=True)
class JobRecord:
    """`failures` are the row of crashes since the last progress; `change` is what to do when the driver has stopped.

    `prepare` is what the next start must do to the state first. `status` is the driver's last, as it was kept.
    """

    job_id: str
    name: str
    state: State
    desired_state: Desired
    since: datetime
    created_at: datetime
    definition: str
    plan: dict[str, Any]
    attempt: int
    restarts: int
    failures: list[dict[str, Any]]
    restart_at: datetime | None
    last_error: dict[str, Any] | None
    change: dict[str, Any] | None
    prepare: dict[str, Any] | None
    final_savepoint: str | None
    status: dict[str, Any] | None

    @classmethod
    def of(cls, row: sa.RowMapping) -> JobRecord:
        fields = {**row, "state": State(row["state"]), "desired_state": Desired(row["desired_state"])}
        return cls(**fields)


@dataclass(frozen=True)
class AttemptRecord:
    """One start of a job's driver. `process` names it to the launcher; an attempt without `closed_at` may write."""

    job_id: str
    attempt: int
    token_hash: str
    mark: str
    launched_at: datetime
    process: dict[str, Any] | None
    acked_seq: int
    last_word: dict[str, Any] | None
    started: bool
    stop_asked_at: datetime | None
    closed_at: datetime | None


@dataclass(frozen=True)
class EventRecord:
    event_id: int
    job_id: str
    at: datetime
    kind: str
    from_state: str | None
    to_state: str | None
    duration_ms: int | None
    attempt: int
    cause: str


@dataclass(frozen=True)
class CommandRecord:
    job_id: str
    command_id: int
    attempt: int
    body: dict[str, Any]
    created_at: datetime
    result: dict[str, Any] | None


@dataclass(frozen=True)
class SavepointRecord:
    savepoint_id: str
    job_id: str
    name: str
    attempt: int
    state: str
    location: str
    created_at: datetime
    completed_at: datetime | None
    summary: dict[str, Any] | None
    failure: dict[str, Any] | None


@dataclass(frozen=True)
class TokenRecord:
    token_id: str
    name: str
    role: str
    token_hash: str
    created_at: datetime
    expires_at: datetime | None
