"""The SQLite sink: an epoch's rows, its ledger entry and the rows that were refused, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.connectors.chunks import computed_chunks
from tidemark.connectors.connector import EpochRows, SinkContext
from tidemark.connectors.local_disk import named_disk_faults
from tidemark.connectors.paths import local_path
from tidemark.connectors.refusal import Refusal, from_bytes, refused_rows, to_bytes, with_reasons
from tidemark.connectors.rendering import column_values
from tidemark.connectors.sqlite.faults import named_faults, refusal_of
from tidemark.connectors.sqlite.ledger import Ledger
from tidemark.connectors.sqlite.table import Table

BUSY_TIMEOUT_SECONDS = 10.0
_CACHE_KIB = 65_536


class SqliteSink:
    """Exactly once. Several sinks, of one or several jobs, may share a database file: they write in turn."""

    exactly_once = True

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._path = local_path(context.options["path"], context.base)
        self._table = Table(context)
        self._connection: sqlite3.Connection | None = None

    def open(self) -> int | None:
        self.close()
        with named_disk_faults(self._path, self._context.sink):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._named_faults():
            self._connection = connect(self._path)
            with _transaction(self._connection):
                last = self._ledger.take_over()
                self._table.prepare(self._connection)
        return last

    def held(self, epoch: int) -> int | None:
        with self._named_faults():
            return self._ledger.held(epoch)

    def write(self, epoch: int, rows: EpochRows) -> int:
        with self._named_faults():
            chunks = computed_chunks(rows)
            with _transaction(self._opened):
                self._ledger.check_turn(epoch)
                count = self._write_rows(epoch, chunks)
                self._ledger.record(epoch, count)
                self._context.failpoint("before_sink_commit")
        self._context.failpoint("after_sink_commit")
        return count

    def refused(self, epoch: int) -> int:
        with self._named_faults():
            return self._ledger.refused(epoch)

    def refused_rows(self, epoch: int) -> Iterator[pa.RecordBatch]:
        with self._named_faults():
            for kept in self._ledger.kept_refused(epoch):
                yield from_bytes(kept)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write_rows(self, epoch: int, chunks: Iterator[pa.RecordBatch]) -> int:
        count = part = 0
        self._ledger.forget_refused()
        for number, chunk in enumerate(chunks):
            bad = list(refused_rows(chunk, self._try))
            if bad:
                kept = to_bytes(with_reasons(bad)) if self._context.keeps_refused else None
                self._ledger.keep_refused(epoch, part, len(bad), kept)
                part += 1
            count += chunk.num_rows - len(bad)
            if number == 0:
                self._context.failpoint("mid_sink")
        return count

    def _try(self, chunk: pa.RecordBatch) -> Refusal | None:
        """All of these rows, or none and the reason."""
        self._opened.execute("SAVEPOINT tidemark_chunk")
        try:
            self._write_chunk(chunk)
        except sqlite3.Error as error:
            refusal = refusal_of(error)
            if refusal is None or not self._opened.in_transaction:
                raise
            self._opened.execute("ROLLBACK TO tidemark_chunk")
            return refusal
        finally:
            if self._opened.in_transaction:
                self._opened.execute("RELEASE tidemark_chunk")
        return None

    def _write_chunk(self, chunk: pa.RecordBatch) -> None:
        if not self._table.key:
            self._opened.executemany(self._table.insert_sql, self._values(chunk))
            return
        keyless = self._has_null_key(chunk)
        if keyless.true_count:
            self._replace_keyless(chunk.filter(keyless))
            chunk = chunk.filter(pc.invert(keyless))
        self._opened.executemany(self._table.upsert_sql, self._values(chunk))

    def _replace_keyless(self, chunk: pa.RecordBatch) -> None:
        """To a unique index nulls differ from each other; to the job, rows with the same null key are one row."""
        positions = [list(self._table.types).index(name) for name in self._table.key]
        for row in self._values(chunk):
            self._opened.execute(self._table.delete_sql, [row[position] for position in positions])
            self._opened.execute(self._table.insert_sql, row)

    def _has_null_key(self, chunk: pa.RecordBatch) -> pa.Array:
        keyless = pc.is_null(chunk.column(self._table.key[0]), nan_is_null=True)
        for name in self._table.key[1:]:
            keyless = pc.or_(keyless, pc.is_null(chunk.column(name), nan_is_null=True))
        return keyless

    def _values(self, chunk: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        columns = (column_values(chunk.column(name), type_) for name, type_ in self._table.types.items())
        return zip(*columns, strict=True)

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._connection is not None, "the sink is not open"
        return self._connection

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self._opened, self._context)

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        with named_faults(self._path, self._context.sink):
            yield


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits survive a power cut and leave readers alone (WAL), usable from any thread."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
