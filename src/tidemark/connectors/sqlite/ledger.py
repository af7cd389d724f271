"""Which epochs a sink holds and whose turn it is to write, kept in the database beside the rows.

One row per lineage and sink, and beside it the rows of its last epoch that the database refused. Every function that
writes runs inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.turns import check_new, fenced, is_older

TABLE = "_tidemark_ledger"
REFUSED = "_tidemark_refused"
_CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    lineage TEXT NOT NULL, sink TEXT NOT NULL, job TEXT NOT NULL, attempt INTEGER NOT NULL,
    epoch INTEGER, rows INTEGER, previous_epoch INTEGER, previous_rows INTEGER,
    PRIMARY KEY (lineage, sink)
) WITHOUT ROWID"""
_CREATE_REFUSED = f"""
CREATE TABLE IF NOT EXISTS {REFUSED} (
    lineage TEXT NOT NULL, sink TEXT NOT NULL, epoch INTEGER NOT NULL, part INTEGER NOT NULL,
    count INTEGER NOT NULL, rows BLOB,
    PRIMARY KEY (lineage, sink, epoch, part)
)"""
_FORGET = f"DELETE FROM {REFUSED} WHERE lineage = ? AND sink = ?"
_KEEP = f"INSERT INTO {REFUSED} (lineage, sink, epoch, part, count, rows) VALUES (?, ?, ?, ?, ?, ?)"
_COUNT = f"SELECT coalesce(sum(count), 0) FROM {REFUSED} WHERE lineage = ? AND sink = ? AND epoch = ?"
_KEPT = f"SELECT rows FROM {REFUSED} WHERE lineage = ? AND sink = ? AND epoch = ? AND part = ? AND rows IS NOT NULL"
_TAKE_OVER = f"""
INSERT INTO {TABLE} (lineage, sink, job, attempt) VALUES (?, ?, ?, ?)
ON CONFLICT (lineage, sink) DO UPDATE SET job = excluded.job, attempt = excluded.attempt"""
_READ = f"SELECT attempt, epoch, rows, previous_epoch, previous_rows FROM {TABLE} WHERE lineage = ? AND sink = ?"
_RECORD = f"""
UPDATE {TABLE} SET previous_epoch = epoch, previous_rows = rows, epoch = ?, rows = ? WHERE lineage = ? AND sink = ?"""


class Ledger:
    def __init__(self, connection: sqlite3.Connection, context: SinkContext) -> None:
        self._connection = connection
        self._context = context
        self._key = (context.lineage, context.sink)

    def take_over(self) -> int | None:
        """Makes this attempt the one that may write; the last epoch held."""
        self._connection.execute(_CREATE)
        self._connection.execute(_CREATE_REFUSED)
        attempt, epoch = self._read()[:2]
        if is_older(self._context, attempt):
            raise fenced(self._context, attempt)
        self._connection.execute(_TAKE_OVER, (*self._key, self._context.job, self._context.attempt))
        return epoch

    def held(self, epoch: int) -> int | None:
        attempt, last, rows, previous, previous_rows = self._read()
        if is_older(self._context, attempt):
            raise fenced(self._context, attempt)
        return {previous: previous_rows, last: rows}.get(epoch)

    def check_turn(self, epoch: int) -> None:
        """Raises Fenced when another attempt has taken over, StateFault when `epoch` is not a new one."""
        attempt, last = self._read()[:2]
        if attempt != self._context.attempt:
            raise fenced(self._context, attempt)
        check_new(self._context, last, epoch)

    def record(self, epoch: int, rows: int) -> None:
        self._connection.execute(_RECORD, (epoch, rows, *self._key))

    def forget_refused(self) -> None:
        """Those of the epoch before, which have reached their sinks by now."""
        self._connection.execute(_FORGET, self._key)

    def keep_refused(self, epoch: int, part: int, count: int, rows: bytes | None) -> None:
        self._connection.execute(_KEEP, (*self._key, epoch, part, count, rows))

    def refused(self, epoch: int) -> int:
        """How many rows of the last epoch were refused; 0 for any other epoch."""
        return int(self._connection.execute(_COUNT, (*self._key, epoch)).fetchone()[0])

    def kept_refused(self, epoch: int) -> Iterator[bytes]:
        """Part after part, so that one of them is in memory at a time."""
        part = 0
        while found := self._connection.execute(_KEPT, (*self._key, epoch, part)).fetchone():
            yield found[0]
            part += 1

    def _read(self) -> tuple[int | None, ...]:
        row: tuple[int | None, ...] | None = self._connection.execute(_READ, self._key).fetchone()
        return row or (None,) * 5
