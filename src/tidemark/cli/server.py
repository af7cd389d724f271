"""`server` and `tokens …`: what is done on the machine of the control plane itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.cli.failures import FINE
from tidemark.cli.tables import moment, put, table
from tidemark.control_plane.server import STORE, serve
from tidemark.control_plane.store.access import Role, create_token, list_tokens, revoke_token
from tidemark.control_plane.store.database import Database
from tidemark.errors import UsageError
from tidemark.settings import load_settings


def server(host: str | None, port: int | None) -> int:
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    serve(load_settings(Path.cwd()).model_copy(update=given), Path.cwd())
    return FINE


def create(name: str, role: str, days: int | None, *, as_json: bool) -> int:
    """Prints the token, once: only its hash is kept."""
    if role not in set(Role):
        raise UsageError(f"there is no role {role!r}", hint=f"the roles are {', '.join(Role)}")
    lifetime = None if days is None else timedelta(days=days)
    with _store().writing() as connection:
        record, token = create_token(connection, name, Role(role), datetime.now(UTC), lifetime)
    put({"token_id": record.token_id, "role": record.role, "token": token}, [token], as_json=as_json)
    return FINE


def list_all(*, as_json: bool) -> int:
    with _store().reading() as connection:
        found = list_tokens(connection)
    rows = [[each.token_id, each.name, each.role, moment(each.created_at), moment(each.expires_at)] for each in found]
    names = ("token_id", "name", "role", "created_at", "expires_at")
    answer = [dict(zip(names, row, strict=True)) for row in rows]
    put(answer, table(("token", "name", "role", "created", "expires"), rows), as_json=as_json)
    return FINE


def revoke(token_id: str) -> int:
    with _store().writing() as connection:
        revoke_token(connection, token_id)
    print(f"{token_id}: revoked")
    return FINE


def _store() -> Database:
    return Database(load_settings(Path.cwd()).home / STORE)
