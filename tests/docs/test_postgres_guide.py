"""The guide to PostgreSQL is true: its job is run into a real server and its tables hold what the page shows."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from docs.blocks import blocks_in
from psycopg.rows import dict_row
from support.repository import ROOT
from support.session_run import run_drained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = ROOT / "docs" / "postgres.md"
QUERIES = {
    "orders": "SELECT order_id, store, amount FROM sales.orders",
    "refused": "SELECT order_id, amount, _error_code, _error FROM sales.refused",
    "unreadable": "SELECT convert_from(_raw, 'UTF8') AS raw, _error_code FROM sales.unreadable",
}


def block(word: str, name: str | None = None) -> str:
    (found,) = [each for each in blocks_in(GUIDE) if word in each.asks and name in (None, each.asks[word])]
    return found.text


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


def test_the_tables_hold_what_the_guide_shows(
    tmp_path: Path, spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG", database)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.jsonl").write_text(block("input"))
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        connection.execute(block("sql").encode())
        run_drained(block("postgres"), tmp_path, spark)
        for name, query in QUERIES.items():
            assert query in GUIDE.read_text()
            found = connection.execute(query.encode()).fetchall()
            assert sorted(found, key=str) == sorted(rows(block("output", name)), key=str)
