"""The PostgreSQL sink: an epoch's rows, its ledger entry and the rows that were refused, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pyarrow as pa

from tidemark.connectors.chunks import computed_chunks
from tidemark.connectors.connector import EpochRows, SinkContext
from tidemark.connectors.postgres.faults import named_faults, refusal_of
from tidemark.connectors.postgres.ledger import Ledger
from tidemark.connectors.postgres.session import Address
from tidemark.connectors.postgres.table import Table
from tidemark.connectors.postgres.types import copy_text
from tidemark.connectors.refusal import Refusal, from_bytes, refused_rows, to_bytes, with_reasons


@dataclass
class _Session:
    """A connection with what was found out and made on it."""

    connection: psycopg.Connection
    ledger: Ledger
    staged: bool = field(default=False)


class PostgresSink:
    """Exactly once. A lost connection is made again by the next call; whose turn it is, is asked in every write."""

    exactly_once = True

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._address = Address(context)
        self._table = Table(context)
        self._session: _Session | None = None

    def open(self) -> int | None:
        self.close()
        with self._named_faults():
            try:
                return self._take_over()
            except psycopg.errors.LockNotAvailable:
                self._connected().ledger.end_older_sessions()
                return self._take_over()

    def held(self, epoch: int) -> int | None:
        with self._named_faults():
            return self._connected().ledger.held(epoch)

    def write(self, epoch: int, rows: EpochRows) -> int:
        with self._named_faults():
            session = self._connected()
            chunks = computed_chunks(rows)
            self._make_stage(session)
            with session.connection.transaction():
                session.ledger.check_turn(epoch)
                session.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
                count = self._write_rows(session, epoch, chunks)
                self._context.failpoint("before_sink_commit")
        self._context.failpoint("after_sink_commit")
        return count

    def refused(self, epoch: int) -> int:
        with self._named_faults():
            return self._connected().ledger.refused(epoch)

    def refused_rows(self, epoch: int) -> Iterator[pa.RecordBatch]:
        with self._named_faults():
            for kept in self._connected().ledger.kept_refused(epoch):
                yield from_bytes(kept)

    def close(self) -> None:
        if self._session is not None:
            self._session.connection.close()
            self._session = None

    # --- one epoch --------------------------------------------------------------------------------------------

    def _take_over(self) -> int | None:
        session = self._connected()
        with session.connection.transaction():
            last = session.ledger.take_over()
            self._table.prepare(session.connection)
        return last

    def _write_rows(self, session: _Session, epoch: int, chunks: Iterator[pa.RecordBatch]) -> int:
        given = refused = part = 0
        session.ledger.forget_refused()
        for number, chunk in enumerate(chunks):
            bad = list(refused_rows(chunk, lambda rows: self._try(session, rows)))
            if bad and self._context.keeps_refused:
                session.ledger.keep_refused(epoch, part, to_bytes(with_reasons(bad)))
                part += 1
            given, refused = given + chunk.num_rows, refused + len(bad)
            if number == 0:
                self._context.failpoint("mid_sink")
        session.ledger.record(epoch, given - refused, refused)
        return given - refused

    def _try(self, session: _Session, rows: pa.RecordBatch) -> Refusal | None:
        """All of these rows, or none and the reason."""
        if self._table.key:
            session.connection.execute(self._table.empty_stage())
        try:
            with session.connection.transaction():
                self._apply(session, rows)
        except psycopg.Error as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            return refusal
        return None

    def _apply(self, session: _Session, rows: pa.RecordBatch) -> None:
        with session.connection.cursor() as cursor, cursor.copy(self._table.copy()) as copy:
            copy.write(copy_text(rows, self._table.types.items()))
        if self._table.key:
            if self._table.nulls_differ and self._has_null_key(rows):
                session.connection.execute(self._table.delete_keyless())
            session.connection.execute(self._table.merge())

    def _make_stage(self, session: _Session) -> None:
        """Once for a connection, before any transaction that might be rolled back."""
        if self._table.key and not session.staged:
            session.connection.execute(self._table.stage())
            session.staged = True

    def _has_null_key(self, rows: pa.RecordBatch) -> bool:
        return any(rows.column(name).null_count for name in self._table.key)

    # --- the connection ---------------------------------------------------------------------------------------

    def _connected(self) -> _Session:
        if self._session is None:
            connection = self._address.connect()
            ledger = Ledger(connection, self._context, self._table.locate(connection))
            self._session = _Session(connection, ledger)
        return self._session

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        with named_faults(self._address.place, self._context.sink, self.close):
            yield
