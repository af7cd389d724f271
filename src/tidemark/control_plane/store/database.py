"""The connection to the store: SQLite in WAL mode, every change one immediate transaction on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.store.migrations import migrate

_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000")
# More than threads that may wait for the turn to write, so that a read finds one.
_CONNECTIONS = 80
_PRIVATE = 0o600


class Database:
    """Safe to use from many threads. A reader sees one consistent state and blocks nobody."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(_PRIVATE)
        self._engine = sa.create_engine(f"sqlite:///{path}", pool_size=_CONNECTIONS, max_overflow=0)
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        self._writing_engine = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        with self.writing() as connection:
            migrate(connection)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction, alone: committed at the end of the block, undone by an exception."""
        with self._writing_engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()


def _prepare(connection: Any, record: object) -> None:
    """Leaves transactions to `_begin`: Python's own handling begins them too late for a consistent read."""
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))
