"""A PostgreSQL sink on a database of its own, and plain SQL beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from connectors.arrow_rows import columns_of, context_for

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.postgres.sink import PostgresSink

COLUMNS = columns_of(k="string", n="long")


def opened(
    url: str,
    columns: tuple[Column, ...] = COLUMNS,
    *,
    attempt: int = 1,
    keeps: bool = True,
    failpoint: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> PostgresSink:
    given = {"url": url, "table": "t", **options}
    context = context_for(Path(), given, columns, attempt=attempt, failpoint=failpoint, keeps_refused=keeps)
    sink = PostgresSink(context)
    try:
        sink.open()
    except BaseException:
        sink.close()
        raise
    return sink


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, options="-c timezone=UTC") as connection:
        return connection.execute(sql.encode()).fetchall()


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
