"""What `$NAME` means to the jobs of this server, and every value it has had since the server began, to be masked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from tidemark.redaction import Redactor
from tidemark.stored_secrets import StoredSecrets, variables


class Variables:
    """The environment, then what is stored in the home at that moment. Safe to use from many threads."""

    def __init__(self, environment: Mapping[str, str], home: Path) -> None:
        self.environment = environment
        self._stored = StoredSecrets.of(home)
        self._lock = threading.Lock()
        self._seen: set[tuple[str, str]] = set()

    @property
    def file(self) -> Path:
        """Where drivers read what is stored."""
        return self._stored.file

    def current(self) -> dict[str, str]:
        """Raises SecretsExposed, or UsageError for a file that cannot be read."""
        found = variables(self.environment, self._stored.values())
        with self._lock:
            self._seen |= set(found.items())
        return found

    def redactor(self, names: tuple[str, ...]) -> Redactor:
        """Also masks values that were replaced meanwhile: a driver that runs still has the one of its start."""
        with self._lock:
            return Redactor.of({value: name for name, value in self._seen if name in names})
