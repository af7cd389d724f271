"""The tables of the control plane's store. Moments are microseconds since 1970, so that they sort in any database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

METADATA = sa.MetaData()
JSON = sa.JSON(none_as_null=True)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(sa.types.TypeDecorator[datetime]):
    """A time in UTC, to the microsecond."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


JOBS = sa.Table(
    "jobs",
    METADATA,
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, index=True),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("desired_state", sa.Text, nullable=False),
    sa.Column("since", Moment, nullable=False),
    sa.Column("created_at", Moment, nullable=False, index=True),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("plan", JSON, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("restarts", sa.Integer, nullable=False, default=0),
    sa.Column("failures", JSON, nullable=False),
    sa.Column("restart_at", Moment),
    sa.Column("last_error", JSON),
    sa.Column("change", JSON),
    sa.Column("prepare", JSON),
    sa.Column("final_savepoint", sa.Text),
    sa.Column("status", JSON),
)

ATTEMPTS = sa.Table(
    "attempts",
    METADATA,
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.job_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("token_hash", sa.Text, nullable=False),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("launched_at", Moment, nullable=False),
    sa.Column("process", JSON),
    sa.Column("acked_seq", sa.BigInteger, nullable=False, default=0),
    sa.Column("last_word", JSON),
    sa.Column("started", sa.Boolean, nullable=False, default=False),
    sa.Column("stop_asked_at", Moment),
    sa.Column("closed_at", Moment),
)

EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("event_id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.job_id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("at", Moment, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("from_state", sa.Text),
    sa.Column("to_state", sa.Text),
    sa.Column("duration_ms", sa.BigInteger),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
)

COMMANDS = sa.Table(
    "commands",
    METADATA,
    sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.job_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("command_id", sa.Integer, primary_key=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("body", JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("result", JSON),
)

SAVEPOINTS = sa.Table(
    "savepoints",
    METADATA,
    sa.Column("savepoint_id", sa.Text, primary_key=True),
    sa.Column("job_id", sa.Text, nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("completed_at", Moment),
    sa.Column("summary", JSON),
    sa.Column("failure", JSON),
)

IDEMPOTENCY = sa.Table(
    "idempotency_keys",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("request_hash", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("token_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("token_hash", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment),
)

AUDIT = sa.Table(
    "audit",
    METADATA,
    sa.Column("audit_id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", Moment, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("detail", sa.Text),
)
