"""SQLite's refusals in Tidemark's words. The one place where an error code of SQLite is looked at."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.connectors.local_disk import disk_full
from tidemark.errors import SinkFailure, SinkMismatch, SinkUnavailable

_PRIMARY_CODE = 0xFF
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNFIT = {
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database",
    sqlite3.SQLITE_CORRUPT: "the database is damaged",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_CONSTRAINT: "a constraint of the table refuses a row",
    sqlite3.SQLITE_MISMATCH: "a column refuses a value's type",
    sqlite3.SQLITE_ERROR: "the table does not fit",
}


@contextmanager
def named_faults(path: Path, step: str) -> Iterator[None]:
    """Lets only Tidemark's errors out of the block when the database fails."""
    try:
        yield
    except sqlite3.Error as error:
        raise sqlite_fault(error, path, step) from error


def sqlite_fault(error: sqlite3.Error, path: Path, step: str) -> SinkFailure:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    if code in _BUSY:
        return SinkUnavailable(
            f"the database {path} is locked by another process", hint="Close whatever is writing to it.", step=step
        )
    if code == sqlite3.SQLITE_FULL:
        return disk_full(path, step)
    if code in _UNFIT:
        return SinkMismatch(
            f"cannot use the database {path}: {_UNFIT[code]} ({error})",
            hint="Give another path or table, or repair this one.",
            step=step,
        )
    return SinkFailure(f"the database {path} failed: {error}", hint="Check the disk and the database.", step=step)
