"""Who may do what, and who did: tokens (hashed), the audit log, and keys of requests that must not be done twice."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import sqlalchemy as sa

from tidemark.control_plane.store.records import TokenRecord
from tidemark.control_plane.store.schema import AUDIT, IDEMPOTENCY, TOKENS
from tidemark.errors import Conflict, NotFound

KEPT_KEYS = timedelta(hours=24)


class Role(StrEnum):
    """In the order of what they may do; each may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        return list(Role).index(self) >= list(Role).index(other)


@dataclass(frozen=True)
class AuditEntry:
    audit_id: int
    at: datetime
    actor: str
    action: str
    target: str
    detail: str | None


def hash_token(token: str) -> str:
    """Tokens are long random text, so that a plain digest cannot be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()


def same_hash(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(), second.encode())


def create_token(
    connection: sa.Connection, name: str, role: Role, now: datetime, lifetime: timedelta | None
) -> tuple[TokenRecord, str]:
    """The record, and the token itself, which is kept nowhere."""
    token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    token = f"tm_{token_id}_{secret}"
    expires = None if lifetime is None else now + lifetime
    record = TokenRecord(token_id, name, role, hash_token(token), now, expires)
    connection.execute(sa.insert(TOKENS).values(**vars(record)))
    return record, token


def find_token(known: Sequence[TokenRecord], token: str, now: datetime) -> TokenRecord | None:
    """The token's record, unless it is unknown or expired. Every stored hash is compared, in constant time."""
    wanted = hash_token(token)
    found = [record for record in known if same_hash(record.token_hash, wanted)]
    return next((record for record in found if record.expires_at is None or now < record.expires_at), None)


def list_tokens(connection: sa.Connection) -> list[TokenRecord]:
    rows = connection.execute(sa.select(TOKENS).order_by(TOKENS.c.created_at)).mappings()
    return [TokenRecord(**row) for row in rows]


def revoke_token(connection: sa.Connection, token_id: str) -> None:
    gone = connection.execute(sa.delete(TOKENS).where(TOKENS.c.token_id == token_id))
    if gone.rowcount == 0:
        raise NotFound(f"there is no token {token_id!r}", hint="`tidemark tokens list` shows them")


def record_change(
    connection: sa.Connection, actor: str, action: str, target: str, now: datetime, detail: str | None = None
) -> None:
    values = {"at": now, "actor": actor, "action": action, "target": target, "detail": detail}
    connection.execute(sa.insert(AUDIT).values(**values))


def was_recorded(connection: sa.Connection, action: str, target: str) -> bool:
    wanted = sa.select(AUDIT.c.audit_id).where(AUDIT.c.action == action, AUDIT.c.target == target).limit(1)
    return connection.scalar(wanted) is not None


def list_changes(connection: sa.Connection, limit: int, before: int | None = None) -> list[AuditEntry]:
    """The newest first."""
    query = sa.select(AUDIT).order_by(AUDIT.c.audit_id.desc()).limit(limit)
    if before is not None:
        query = query.where(AUDIT.c.audit_id < before)
    return [AuditEntry(**row) for row in connection.execute(query).mappings()]


def job_made_by(connection: sa.Connection, key: str, request_hash: str, now: datetime) -> str | None:
    """The job that a request with this key made before. Raises Conflict when that was another request."""
    connection.execute(sa.delete(IDEMPOTENCY).where(IDEMPOTENCY.c.created_at < now - KEPT_KEYS))
    row = connection.execute(sa.select(IDEMPOTENCY).where(IDEMPOTENCY.c.key == key)).mappings().first()
    if row is None:
        return None
    if row["request_hash"] != request_hash:
        raise Conflict("this Idempotency-Key came before with another request", hint="use a new key for a new request")
    return str(row["job_id"])


def keep_key(connection: sa.Connection, key: str, request_hash: str, job_id: str, now: datetime) -> None:
    values = {"key": key, "request_hash": request_hash, "job_id": job_id, "created_at": now}
    connection.execute(sa.insert(IDEMPOTENCY).values(**values))
