"""The target table: its SQL, its creation, and whether an existing one fits. Names are always quoted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import cached_property

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.sqlite.ledger import REFUSED, TABLE
from tidemark.errors import SinkMismatch
from tidemark.schema import Type, parse_type

_DECLARED = {
    "int": "INTEGER",
    "long": "INTEGER",
    "boolean": "INTEGER",
    "float": "REAL",
    "double": "REAL",
    "binary": "BLOB",
}
# NUMERIC keeps ISO text as it is (so TIMESTAMP and DATE columns serve) but would round a decimal.
_ACCEPTED = {
    "INTEGER": ("INTEGER", "NUMERIC", "BLOB"),
    "REAL": ("REAL", "NUMERIC", "BLOB"),
    "BLOB": ("BLOB",),
    "TEXT": ("TEXT", "BLOB"),
}
_ACCEPTED_FOR_TIMES = ("TEXT", "NUMERIC", "BLOB")
_AFFINITIES = (
    ("INTEGER", ("INT",)),
    ("TEXT", ("CHAR", "CLOB", "TEXT")),
    ("BLOB", ("BLOB",)),
    ("REAL", ("REAL", "FLOA", "DOUB")),
)


class Table:
    """What the sink writes to. `key` is empty for append."""

    def __init__(self, context: SinkContext) -> None:
        self._step = context.sink
        self.name: str = context.options["table"]
        self.types: dict[str, Type] = {column.name: parse_type(column.type) for column in context.columns}
        upsert = context.options.get("mode") != "append"
        self.key: tuple[str, ...] = tuple(context.options.get("key") or ()) if upsert else ()

    @cached_property
    def insert_sql(self) -> str:
        return f"INSERT INTO {quoted(self.name)} ({_listed(self.types)}) VALUES ({_marks(self.types)})"

    @cached_property
    def upsert_sql(self) -> str:
        changes = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in self.types if name not in self.key)
        action = f"UPDATE SET {changes}" if changes else "NOTHING"
        return f"{self.insert_sql} ON CONFLICT ({_listed(self.key)}) DO {action}"

    @cached_property
    def delete_sql(self) -> str:
        """Deletes by key, where a null equals a null."""
        return f"DELETE FROM {quoted(self.name)} WHERE {' AND '.join(f'{quoted(name)} IS ?' for name in self.key)}"

    @property
    def create_sql(self) -> str:
        columns = [f"{quoted(name)} {self._declared(name)}" for name in self.types]
        constraint = [f"PRIMARY KEY ({_listed(self.key)})"] if self.key else []
        return f"CREATE TABLE {quoted(self.name)} ({', '.join(columns + constraint)})"

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Creates a missing table; raises SinkMismatch naming the column when an existing one does not fit."""
        self._check_names()
        kind = self._existing_kind(connection)
        if kind is None:
            connection.execute(self.create_sql)
        elif kind != "table":
            raise self._mismatch(f"{self.name!r} is a {kind}, not a table", "Give the name of a table.")
        else:
            self._check_columns(connection)
            self._check_key(connection)

    def _declared(self, name: str) -> str:
        if self.key == (name,) and self.types[name].name in ("int", "long"):
            return "INT"  # INTEGER would make it the row id, for which SQLite replaces a null by a number
        return _DECLARED.get(self.types[name].name, "TEXT")

    def _existing_kind(self, connection: sqlite3.Connection) -> str | None:
        found = connection.execute(
            "SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')", (self.name,)
        ).fetchone()
        return found[0] if found else None

    def _check_names(self) -> None:
        if self.name.lower() in (TABLE, REFUSED):
            raise self._mismatch(f"the table {self.name!r} is Tidemark's own", "Give another table name.")
        for name in (self.name, *self.types):
            if "\0" in name:
                raise self._mismatch(f"the name {name!r} holds a NUL character", "Take it out.")
        for name in self.key:
            if name not in self.types:
                raise self._mismatch(f"key column {name!r} is not in the rows", f"It can be one of {[*self.types]}.")

    def _check_columns(self, connection: sqlite3.Connection) -> None:
        info = connection.execute(f"PRAGMA table_xinfo({quoted(self.name)})").fetchall()
        existing = {name.lower(): declared for _, name, declared, _, _, _, hidden in info if not hidden}
        for name, type_ in self.types.items():
            if name.lower() not in existing:
                raise self._mismatch(f"table {self.name!r} has no column {name!r} ({type_})", "Add the column.")
            if affinity(existing[name.lower()]) not in _accepted(type_):
                raise self._mismatch(
                    f"column {name!r} of table {self.name!r} is {existing[name.lower()]}, which cannot hold {type_}",
                    f"Declare it {self._declared(name)}.",
                )
        written = {name.lower() for name in self.types}
        for _, name, _, required, default, _, hidden in info:
            if required and default is None and not hidden and name.lower() not in written:
                raise self._mismatch(
                    f"column {name!r} of table {self.name!r} is NOT NULL and the rows do not have it",
                    "Give it a default, or write it.",
                )

    def _check_key(self, connection: sqlite3.Connection) -> None:
        if not self.key:
            return
        try:
            connection.execute(f"EXPLAIN {self.upsert_sql}", [None] * len(self.types)).fetchall()
        except sqlite3.OperationalError as error:
            raise self._mismatch(
                f"table {self.name!r} has no unique index over the key {', '.join(map(repr, self.key))}",
                "Create one over exactly these columns, or use mode: append.",
            ) from error

    def _mismatch(self, message: str, hint: str) -> SinkMismatch:
        return SinkMismatch(message, hint=hint, step=self._step)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def affinity(declared: str) -> str:
    """The affinity SQLite gives a column declared so (section 3.1 of its page on data types)."""
    words = declared.upper()
    if not words:
        return "BLOB"
    return next((name for name, marks in _AFFINITIES if any(mark in words for mark in marks)), "NUMERIC")


def _accepted(type_: Type) -> tuple[str, ...]:
    if type_.name in ("timestamp", "date"):
        return _ACCEPTED_FOR_TIMES
    return _ACCEPTED[_DECLARED.get(type_.name, "TEXT")]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _marks(names: Iterable[str]) -> str:
    return ", ".join("?" for _ in names)
