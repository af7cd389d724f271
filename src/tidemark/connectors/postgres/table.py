"""The target table: its SQL, its creation, and whether an existing one fits. Names are always quoted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.postgres.ledger import REFUSED, TABLE
from tidemark.connectors.postgres.options import split_table
from tidemark.connectors.postgres.types import accepts, declared
from tidemark.errors import SinkDenied, SinkMismatch
from tidemark.schema import Type, parse_type

_OLDEST_SERVER = 150_000
_STAGE = sql.Identifier("pg_temp", "_tidemark_stage")
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), coalesce(b.typname, t.typname), coalesce(b.typtype, t.typtype),
    a.atttypmod, a.attgenerated <> '' OR a.attidentity = 'a', a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped"""
_UNIQUE = """
SELECT i.indnullsnotdistinct, array(
    SELECT a.attname FROM unnest(i.indkey[0:i.indnkeyatts - 1]) AS k(n)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n)::text[]
FROM pg_index i
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY i.indnullsnotdistinct DESC"""
_KINDS = {"v": "a view", "m": "a materialized view", "S": "a sequence", "i": "an index", "c": "a type"}


@dataclass(frozen=True)
class _Existing:
    """A column as the catalogue has it. `fixed` means that it cannot be written, `needed` that it must be."""

    name: str
    shown: str
    type: str
    kind: str
    modifier: int
    fixed: bool
    needed: bool


class Table:
    """What the sink writes to. `key` is empty for append; `nulls_differ` says that its index holds a null key twice."""

    def __init__(self, context: SinkContext) -> None:
        self._step = context.sink
        parts = split_table(context.options["table"])
        if parts is None:
            raise self._mismatch(f"{context.options['table']!r} is no name of a table", "Write `schema.table`.")
        self._schema, self.name = parts
        self.types: dict[str, Type] = {column.name: parse_type(column.type) for column in context.columns}
        upsert = context.options.get("mode") != "append"
        self.key: tuple[str, ...] = tuple(context.options.get("key") or ()) if upsert else ()
        self.nulls_differ = False

    def locate(self, connection: psycopg.Connection) -> str:
        """The schema of the table: that which is named, else the first one that the session looks in."""
        if connection.info.server_version < _OLDEST_SERVER:
            raise self._mismatch("the server is older than PostgreSQL 15", "Use PostgreSQL 15 or newer.")
        if self._schema is None:
            ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
            if schema is None:
                raise self._mismatch("no schema is on the search path", "Write the table as `schema.table`.")
            self._schema = schema
        return self._schema

    def prepare(self, connection: psycopg.Connection) -> None:
        """Creates a missing table; raises SinkMismatch naming the column when an existing one does not fit."""
        self._check_names()
        place = (self.identifier.as_string(connection),)
        found = connection.execute("SELECT oid, relkind FROM pg_class WHERE oid = to_regclass(%s)", place).fetchone()
        if found is None:
            connection.execute(self._create())
            return
        oid, kind = found
        if kind not in ("r", "p", "f"):
            raise self._mismatch(f"{self.name!r} is {_KINDS.get(kind, 'something else')}", "Give the name of a table.")
        self._check_rights(connection, oid)
        self._check_columns(connection, oid)
        self._check_key(connection, oid)

    # --- statements -------------------------------------------------------------------------------------------

    @property
    def identifier(self) -> sql.Identifier:
        assert self._schema is not None, "the table was not located"
        return sql.Identifier(self._schema, self.name)

    def stage(self) -> sql.Composed:
        """A private table of the same column types, where rows wait for their place in the target."""
        statement = sql.SQL("CREATE TEMPORARY TABLE _tidemark_stage ON COMMIT DELETE ROWS AS SELECT {} FROM {} LIMIT 0")
        return statement.format(_listed(self.types), self.identifier)

    def empty_stage(self) -> sql.Composed:
        return sql.SQL("TRUNCATE {}").format(_STAGE)

    def copy(self) -> sql.Composed:
        target = _STAGE if self.key else self.identifier
        return sql.SQL("COPY {} ({}) FROM STDIN").format(target, _listed(self.types))

    def merge(self) -> sql.Composed:
        """From the stage into the target, the last row of each key; in key order, so that two writers wait in turn."""
        changed = [name for name in self.types if name not in self.key]
        updates = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in changed]
        action = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(updates)) if changed else sql.SQL("NOTHING")
        return sql.SQL(
            "INSERT INTO {target} ({columns}) SELECT DISTINCT ON ({key}) {columns} FROM {stage} "
            "ORDER BY {key}, ctid DESC ON CONFLICT ({key}) DO {action}"
        ).format(
            target=self.identifier, columns=_listed(self.types), key=_listed(self.key), stage=_STAGE, action=action
        )

    def delete_keyless(self) -> sql.Composed:
        """To an ordinary unique index nulls differ from each other; to the job, rows with the same null key are one."""
        keyless = [sql.SQL("s.{} IS NULL").format(sql.Identifier(name)) for name in self.key]
        same = [sql.SQL("t.{0} IS NOT DISTINCT FROM s.{0}").format(sql.Identifier(name)) for name in self.key]
        return sql.SQL("DELETE FROM {} t USING {} s WHERE ({}) AND {}").format(
            self.identifier, _STAGE, sql.SQL(" OR ").join(keyless), sql.SQL(" AND ").join(same)
        )

    def _create(self) -> sql.Composed:
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(declared(type_)))
            for name, type_ in self.types.items()
        ]
        if self.key:
            columns.append(sql.SQL("UNIQUE NULLS NOT DISTINCT ({})").format(_listed(self.key)))
        return sql.SQL("CREATE TABLE {} ({})").format(self.identifier, sql.SQL(", ").join(columns))

    # --- checks -----------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        if self.name in (TABLE, REFUSED):
            raise self._mismatch(f"the table {self.name!r} is Tidemark's own", "Give another table name.")
        for name in self.key:
            if name not in self.types:
                raise self._mismatch(f"key column {name!r} is not in the rows", f"It can be one of {[*self.types]}.")

    def _check_rights(self, connection: psycopg.Connection, oid: int) -> None:
        for right in ("INSERT", "SELECT", "UPDATE") if self.key else ("INSERT",):
            ((granted,),) = connection.execute("SELECT has_table_privilege(%s::oid, %s)", (oid, right)).fetchall()
            if not granted:
                raise SinkDenied(
                    f"this user may not {right} on table {self.name!r}",
                    hint=f"GRANT {right} ON it to the user in the url.",
                    step=self._step,
                )

    def _check_columns(self, connection: psycopg.Connection, oid: int) -> None:
        rows = connection.execute(_COLUMNS, (oid,)).fetchall()
        existing = {row[0]: _Existing(*row) for row in rows}
        for name, type_ in self.types.items():
            self._check_column(name, type_, existing.get(name))
        for column in existing.values():
            if column.needed and not column.fixed and column.name not in self.types:
                raise self._mismatch(
                    f"column {column.name!r} of table {self.name!r} is NOT NULL and the rows do not have it",
                    "Give it a default, or write it.",
                )

    def _check_column(self, name: str, type_: Type, column: _Existing | None) -> None:
        if column is None:
            hint = f'Add the column: "{name}" {declared(type_)}.'
            raise self._mismatch(f"table {self.name!r} has no column {name!r} ({type_})", hint)
        if column.fixed:
            raise self._mismatch(f"column {name!r} of table {self.name!r} is generated", "Leave it out of the rows.")
        if not accepts(type_, column.type, column.kind, column.modifier):
            raise self._mismatch(
                f"column {name!r} of table {self.name!r} is {column.shown}, which cannot hold {type_}",
                f"Declare it {declared(type_)}.",
            )

    def _check_key(self, connection: psycopg.Connection, oid: int) -> None:
        if not self.key:
            return
        for nulls_are_equal, names in connection.execute(_UNIQUE, (oid,)):
            if set(names) == set(self.key):
                self.nulls_differ = not nulls_are_equal
                return
        raise self._mismatch(
            f"table {self.name!r} has no unique index over the key {', '.join(map(repr, self.key))}",
            "Create one over exactly these columns, or use mode: append.",
        )

    def _mismatch(self, message: str, hint: str) -> SinkMismatch:
        return SinkMismatch(message, hint=hint, step=self._step)


def _listed(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
