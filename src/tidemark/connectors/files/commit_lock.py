"""The lock that makes the commit section of a files sink exclusive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.durable import lock_exclusively
from tidemark.errors import SinkUnavailable

LOCK_TIMEOUT_SECONDS = 10.0


@contextmanager
def locked(path: Path, step: str) -> Iterator[None]:
    """Holds an exclusive lock that ends with the process; SinkUnavailable when another keeps it too long."""
    with path.open("a") as file:
        if not lock_exclusively(file, LOCK_TIMEOUT_SECONDS):
            raise SinkUnavailable(
                f"{path} is locked by another driver of this job", hint="Stop the other driver.", step=step
            )
        yield
