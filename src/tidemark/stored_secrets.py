"""Secrets that are kept in the home, and what `$NAME` in a job takes: an environment variable, else one of these.

The file is for its owner alone. Only what needs a value reads it, at the moment it does: no value is ever handed to
another process in its arguments or its environment.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tidemark.durable import lock_exclusively, write_atomically
from tidemark.errors import NotFound, SecretsExposed, UsageError

REFERENCE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
SHORTEST = 4  # a shorter value could not be masked without blotting out ordinary text
_LOCK = "lock"
_LOCK_SECONDS = 10.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class StoredSecret:
    value: str
    set_at: datetime


class StoredSecrets:
    """Those of one file. Every reader sees the secrets as they were before a change or after it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._folder = file.parent

    @classmethod
    def of(cls, home: Path) -> StoredSecrets:
        return cls(home / "secrets" / "secrets.json")

    def all(self) -> dict[str, StoredSecret]:
        """By name. Raises SecretsExposed when others than the owner may read the file or change its folder."""
        return self._read()

    def values(self) -> dict[str, str]:
        return {name: secret.value for name, secret in self.all().items()}

    def set(self, name: str, value: str, now: datetime) -> None:
        """Adds or replaces one. Raises UsageError for a name that no job can write, or a value that nobody can mask."""
        if REFERENCE.fullmatch(f"${name}") is None:
            raise UsageError(f"{name!r} is no name of a secret", hint="capital letters, digits and _, no digit first")
        if len(value) < SHORTEST or "\n" in value:
            raise UsageError(
                f"a secret is one line of at least {SHORTEST} characters: another one could not be masked in a log",
                hint="use an environment variable for what is no secret, and a file for a key",
            )
        with self._changing() as kept:
            kept[name] = StoredSecret(value, now)

    def delete(self, name: str) -> None:
        with self._changing() as kept:
            if kept.pop(name, None) is None:
                raise NotFound(f"there is no secret {name!r}", hint="`tidemark secrets list` shows their names")

    @contextmanager
    def _changing(self) -> Iterator[dict[str, StoredSecret]]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self._folder / _LOCK, "a", encoding="utf-8") as lock:
                if not lock_exclusively(lock, _LOCK_SECONDS):
                    raise UsageError(f"another process is changing {self.file}", hint="try again")
                kept = self._read()
                yield kept
                entries = {name: _entry(secret) for name, secret in kept.items()}
                write_atomically(self.file, json.dumps(entries), mode=0o600)
        except OSError as error:
            raise UsageError(
                f"{self.file} cannot be written: {error.strerror}", hint="check the permissions of the home"
            ) from None

    def _read(self) -> dict[str, StoredSecret]:
        try:
            _check_private(self._folder)
            _check_private(self.file)
            kept = json.loads(self.file.read_bytes())
            return {name: _secret(entry) for name, entry in kept.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(f"{self.file} cannot be read: {error.strerror}", hint="check its permissions") from None
        except (ValueError, AttributeError, KeyError, TypeError):
            raise UsageError(f"{self.file} is damaged", hint="remove it, and set the secrets again") from None


def _entry(secret: StoredSecret) -> dict[str, str]:
    return {"value": secret.value, "set_at": secret.set_at.isoformat()}


def _secret(entry: dict[str, str]) -> StoredSecret:
    return StoredSecret(entry["value"], datetime.fromisoformat(entry["set_at"]))


def variables(environment: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """What `$NAME` takes. A variable of the environment goes before: who starts one command can override for it."""
    return {**stored, **environment}


def _check_private(path: Path) -> None:
    if path.stat().st_mode & _OTHERS:
        wanted = "700" if path.is_dir() else "600"
        raise SecretsExposed(f"others may read {path}", hint=f"chmod {wanted} {path}, and change the secrets in it")
