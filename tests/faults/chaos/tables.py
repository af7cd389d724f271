"""The tables of the chaos job, read on from where the last look ended."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from faults.chaos.job import TABLES
from faults.chaos.witness import Witness
from psycopg.rows import dict_row

_SESSION = re.compile(r"tidemark [0-9a-f]{32} (\d+)")
# What is looked at: the kind of row, the table that has it in order, and the sink that writes it.
_ORDERED = (
    ("totals", "totals_versions", "totals_table"),
    ("windows", "windows", "windows_table"),
    ("log", "log", "log_table"),
)


class Tables:
    """One writer at a time holds the ledger's row before it takes numbers, so numbers are in order of commits."""

    def __init__(self, url: str) -> None:
        self.witness = Witness("PostgreSQL")
        self._url = url
        self._seen = dict.fromkeys((table for _, table, _ in _ORDERED), 0)

    def look(self) -> None:
        for kind, table, sink in _ORDERED:
            statement = f"SELECT * FROM {table} WHERE place > {self._seen[table]} ORDER BY place"
            for row in self.rows(statement):
                self._seen[table] = row["place"]
                self.witness.see(kind, row)
                self.witness.see_attempt(sink, _attempt(row["session"]))

    def ledger(self) -> dict[str, int | None]:
        """The last epoch that each sink holds."""
        found = {row["sink"]: row["epoch"] for row in self.rows("SELECT sink, epoch FROM _tidemark_ledger")}
        return {sink: found.get(sink) for sink in TABLES}

    def held_rows(self) -> dict[str, int]:
        return {
            sink: self.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"]
            for sink, table in TABLES.items()
            if sink != "totals_table"
        }

    def bad(self) -> list[bytes]:
        return [bytes(row["_raw"]) for row in self.rows("SELECT _raw FROM bad")]

    def current(self) -> dict[str, int]:
        return {row["key"]: row["events"] for row in self.rows("SELECT key, events FROM totals")}

    def rows(self, statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(self._url, row_factory=dict_row) as connection:
            connection.execute("SET timezone = 'UTC'")
            return connection.execute(statement.encode()).fetchall()


def _attempt(session: str) -> int:
    """The name that a sink gives its sessions ends with its attempt; anything else is no writer of ours."""
    shape = _SESSION.fullmatch(session)
    assert shape is not None, f"a row was written by {session!r}"
    return int(shape[1])
