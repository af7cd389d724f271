"""PostgreSQL's refusals in Tidemark's words. The one place where an SQLSTATE is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psycopg

from tidemark.connectors.refusal import Refusal
from tidemark.errors import DiskFull, SinkDenied, SinkFailure, SinkMismatch, SinkUnavailable
from tidemark.record_errors import RowError

# Whole codes, then classes (their first two characters).
ROW_ERRORS: Mapping[str, RowError] = {
    "23502": RowError.NOT_NULL,
    "23503": RowError.FOREIGN_KEY,
    "23505": RowError.NOT_UNIQUE,
    "22001": RowError.TOO_LONG,
    "22003": RowError.OUT_OF_RANGE,
    "22008": RowError.OUT_OF_RANGE,
    "22021": RowError.BAD_TEXT,
    "22P05": RowError.BAD_TEXT,
    "54000": RowError.TOO_LONG,
    "P0001": RowError.REFUSED,
    "44000": RowError.REFUSED,
    "22": RowError.BAD_VALUE,
    "23": RowError.CHECK,
}
# Ours to make right: no row is at fault when the text of a COPY is malformed.
_NOT_THE_ROW = ("22P04",)
_DENIED = "grant this user what it needs on the table and its schema, or give another user in the url"
_CHANGED = "put the table back as it was, or start the job again after changing its definition"
_WAIT = "it is tried again; check that the server is up and reachable"
FAULTS: Mapping[str, tuple[type[SinkFailure], str]] = {
    "53100": (DiskFull, "free some space on the database's disk, then start the job again; nothing is lost"),
    "42501": (SinkDenied, _DENIED),
    "28": (SinkDenied, "check user and password in the url"),
    "3D": (SinkMismatch, "create the database, or correct its name in the url"),
    "3F": (SinkMismatch, "create the schema, or correct the name of the table"),
    "42": (SinkMismatch, _CHANGED),
    "08": (SinkUnavailable, _WAIT),
    "25": (SinkUnavailable, "it is tried again; the server may be a standby that has not taken over yet"),
    "40": (SinkUnavailable, "it is tried again; another writer of the table was in the way"),
    "53": (SinkUnavailable, "it is tried again; the server is short of connections or memory"),
    "55": (SinkUnavailable, "it is tried again; somebody holds a lock on the table"),
    "57": (SinkUnavailable, _WAIT),
}


def refusal_of(error: psycopg.Error) -> Refusal | None:
    """What is wrong with the row; None when the row is not at fault."""
    code = error.sqlstate or ""
    row_error = None if code in _NOT_THE_ROW else ROW_ERRORS.get(code, ROW_ERRORS.get(code[:2]))
    return None if row_error is None else Refusal(row_error, _reason(error))


@contextmanager
def named_faults(place: str, step: str, lost: Callable[[], None]) -> Iterator[None]:
    """Lets only Tidemark's errors out of the block; calls `lost` when the connection can be of no more use."""
    try:
        yield
    except psycopg.Error as error:
        fault = postgres_fault(error, place, step)
        if isinstance(fault, SinkUnavailable):
            lost()
        raise fault from error


def postgres_fault(error: psycopg.Error, place: str, step: str) -> SinkFailure:
    code = error.sqlstate
    known = FAULTS.get(code, FAULTS.get(code[:2])) if code else None
    if known is None and code is None and isinstance(error, psycopg.OperationalError):
        known = _failed_connection(str(error))
    kind, hint = known or (SinkFailure, "see the server's log")
    return kind(f"PostgreSQL at {place}: {_reason(error)}", hint=hint, step=step)


def _failed_connection(text: str) -> tuple[type[SinkFailure], str]:
    """libpq gives no code for what a server answers to a connection attempt, only the server's words."""
    if "password authentication failed" in text or "no password supplied" in text or "pg_hba.conf" in text:
        return FAULTS["28"]
    if 'database "' in text and "does not exist" in text:
        return FAULTS["3D"]
    if 'role "' in text and "does not exist" in text:
        return FAULTS["28"]
    return FAULTS["08"]


def _reason(error: psycopg.Error) -> str:
    """One line; the detail of the server is left out, because it repeats the values of the row."""
    said = error.diag.message_primary or str(error)
    return next(iter(said.strip().splitlines()), type(error).__name__)[:300]
