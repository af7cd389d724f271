"""`secrets …`: what `$NAME` in jobs takes, kept in the home. A value comes in by standard input and never goes out."""

from __future__ import annotations

import getpass
import sys
from datetime import UTC, datetime
from pathlib import Path

from tidemark.cli.failures import FINE
from tidemark.cli.tables import moment, put, table
from tidemark.settings import load_settings
from tidemark.stored_secrets import StoredSecrets


def set_secret(name: str) -> int:
    _store().set(name, _value(name), datetime.now(UTC))
    print(f"{name}: set")
    return FINE


def list_secrets(*, as_json: bool) -> int:
    rows = [[name, moment(secret.set_at)] for name, secret in sorted(_store().all().items())]
    answer = [{"name": name, "set_at": set_at} for name, set_at in rows]
    put(answer, table(("name", "set at"), rows), as_json=as_json)
    return FINE


def delete_secret(name: str) -> int:
    _store().delete(name)
    print(f"{name}: deleted")
    return FINE


def _value(name: str) -> str:
    """As typed without being shown, or what is piped in, without the end of its last line."""
    if sys.stdin.isatty():
        return getpass.getpass(f"{name}: ")
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def _store() -> StoredSecrets:
    return StoredSecrets.of(load_settings(Path.cwd()).home)
