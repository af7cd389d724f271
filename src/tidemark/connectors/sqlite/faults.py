"""SQLite's refusals in Tidemark's words. The one place where an error code of SQLite is looked at."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.connectors.local_disk import disk_full
from tidemark.connectors.refusal import Refusal
from tidemark.errors import SinkFailure, SinkMismatch, SinkUnavailable
from tidemark.record_errors import RowError

_PRIMARY_CODE = 0xFF
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNFIT = {
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database",
    sqlite3.SQLITE_CORRUPT: "the database is damaged",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_CONSTRAINT: "a constraint of the table rolls back everything",
    sqlite3.SQLITE_ERROR: "the table does not fit",
}
# Whole codes, then primary ones.
ROW_ERRORS: dict[int, RowError] = {
    sqlite3.SQLITE_CONSTRAINT_NOTNULL: RowError.NOT_NULL,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: RowError.NOT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: RowError.NOT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_ROWID: RowError.NOT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: RowError.FOREIGN_KEY,
    sqlite3.SQLITE_CONSTRAINT_TRIGGER: RowError.REFUSED,
    sqlite3.SQLITE_CONSTRAINT: RowError.CHECK,
    sqlite3.SQLITE_MISMATCH: RowError.BAD_VALUE,
    sqlite3.SQLITE_TOOBIG: RowError.TOO_LONG,
}


def refusal_of(error: sqlite3.Error) -> Refusal | None:
    """What is wrong with the row; None when the row is not at fault."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    row_error = ROW_ERRORS.get(code, ROW_ERRORS.get(code & _PRIMARY_CODE))
    return None if row_error is None else Refusal(row_error, str(error))


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
