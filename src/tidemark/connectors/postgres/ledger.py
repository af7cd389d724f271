"""Which epochs a sink holds and whose turn it is to write, kept in the schema of its table.

One row per lineage and sink, locked for the length of a write; beside it the rows of the last epoch that the
database refused. Every function runs inside the caller's transaction, unless it says otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.turns import check_new, fenced, is_older

TABLE = "_tidemark_ledger"
REFUSED = "_tidemark_refused"
_CREATE = sql.SQL("""
CREATE TABLE IF NOT EXISTS {ledger} (
    lineage text, sink text, job text NOT NULL, attempt bigint NOT NULL, epoch bigint, rows bigint, refused bigint,
    previous_epoch bigint, previous_rows bigint, PRIMARY KEY (lineage, sink)
);
CREATE TABLE IF NOT EXISTS {refused} (
    lineage text, sink text, epoch bigint, part integer, rows bytea NOT NULL, PRIMARY KEY (lineage, sink, epoch, part)
)""")
_ENTER = sql.SQL("INSERT INTO {ledger} (lineage, sink, job, attempt) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING")
_LOCK = sql.SQL("SELECT attempt, epoch FROM {ledger} WHERE lineage = %s AND sink = %s FOR UPDATE")
_TAKE_OVER = sql.SQL("UPDATE {ledger} SET job = %s, attempt = %s WHERE lineage = %s AND sink = %s")
# Waits for a commit that is still on its way: its connection may be lost to us while the server is working on it.
_READ = sql.SQL(
    "SELECT attempt, epoch, rows, refused, previous_epoch, previous_rows FROM {ledger} "
    "WHERE lineage = %s AND sink = %s FOR KEY SHARE"
)
_RECORD = sql.SQL("""
UPDATE {ledger} SET previous_epoch = epoch, previous_rows = rows, epoch = %s, rows = %s, refused = %s
WHERE lineage = %s AND sink = %s""")
_FORGET = sql.SQL("DELETE FROM {refused} WHERE lineage = %s AND sink = %s")
_KEEP = sql.SQL("INSERT INTO {refused} (lineage, sink, epoch, part, rows) VALUES (%s, %s, %s, %s, %s)")
_KEPT = sql.SQL("SELECT rows FROM {refused} WHERE lineage = %s AND sink = %s AND epoch = %s AND part = %s")
# A session is known by its name, because the one that holds the lock may be frozen and never let go of it.
_END_OLDER = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE substring(application_name FROM %s)::bigint < %s AND pid <> pg_backend_pid()"""


class Ledger:
    def __init__(self, connection: psycopg.Connection, context: SinkContext, schema: str) -> None:
        self._connection = connection
        self._context = context
        self._key = (context.lineage, context.sink)
        self._names = {"ledger": sql.Identifier(schema, TABLE), "refused": sql.Identifier(schema, REFUSED)}

    def take_over(self) -> int | None:
        """Makes this attempt the one that may write; the last epoch held."""
        self._create()
        self._run(_ENTER, *self._key, self._context.job, self._context.attempt)
        attempt, epoch = self._lock()
        if attempt is None or is_older(self._context, attempt):
            raise fenced(self._context, attempt)
        self._run(_TAKE_OVER, self._context.job, self._context.attempt, *self._key)
        return epoch

    def end_older_sessions(self) -> None:
        """Ends what older attempts have open: a frozen one would hold its lock for ever. In no transaction."""
        self._connection.execute(_END_OLDER, (f"^{_session_mark(self._context)} ([0-9]+)$", self._context.attempt))

    def held(self, epoch: int) -> int | None:
        last, rows, _, previous, previous_rows = self._read()
        return {previous: previous_rows, last: rows}.get(epoch)

    def refused(self, epoch: int) -> int:
        """How many rows of the last epoch were refused; 0 for any other epoch."""
        last, _, refused, *_ = self._read()
        return refused or 0 if last == epoch else 0

    def check_turn(self, epoch: int) -> None:
        """Locks the row. Raises Fenced when another attempt has taken over, StateFault when `epoch` is not new."""
        attempt, last = self._lock()
        if attempt != self._context.attempt:
            raise fenced(self._context, attempt)
        check_new(self._context, last, epoch)

    def record(self, epoch: int, rows: int, refused: int) -> None:
        self._run(_RECORD, epoch, rows, refused, *self._key)

    def forget_refused(self) -> None:
        """Those of the epoch before, which have reached their sinks by now."""
        self._run(_FORGET, *self._key)

    def keep_refused(self, epoch: int, part: int, rows: bytes) -> None:
        self._run(_KEEP, *self._key, epoch, part, rows)

    def kept_refused(self, epoch: int) -> Iterator[bytes]:
        """Part after part, so that one of them is in memory at a time. In no transaction."""
        part = 0
        while found := self._run(_KEPT, *self._key, epoch, part).fetchone():
            yield found[0]
            part += 1

    def _create(self) -> None:
        """Asked for by name first: to create what exists takes a privilege that a careful owner does not give."""
        place = self._names["refused"].as_string(self._connection)
        ((missing,),) = self._connection.execute("SELECT to_regclass(%s) IS NULL", (place,)).fetchall()
        if missing:
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (TABLE,))
            self._run(_CREATE)

    def _lock(self) -> tuple[int | None, int | None]:
        found = self._run(_LOCK, *self._key).fetchone()
        return (found[0], found[1]) if found else (None, None)

    def _read(self) -> tuple[int | None, ...]:
        """What is held; raises Fenced when a newer attempt has taken over, and may be who holds it."""
        attempt, *held = self._run(_READ, *self._key).fetchone() or (None,) * 6
        if is_older(self._context, attempt):
            raise fenced(self._context, attempt)
        return tuple(held)

    def _run(self, statement: sql.SQL, *values: object) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement.format(**self._names), values or None)


def session_name(context: SinkContext) -> str:
    """Who has a connection open: lineage and sink as one word, and the attempt."""
    return f"{_session_mark(context)} {context.attempt}"


def _session_mark(context: SinkContext) -> str:
    return f"tidemark {hashlib.sha256(f'{context.lineage}/{context.sink}'.encode()).hexdigest()[:32]}"
