"""Every sink that promises exactly once, against every check of the kit."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from connectors.sink_readers import read_csv, read_jsonl, read_parquet, read_postgres, read_table
from pyspark.sql import SparkSession

from tidemark.connectors.connector import Sink, SinkContext
from tidemark.connectors.files.sink import FilesSink
from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.connectors.sqlite.sink import SqliteSink
from tidemark.testing.conformance import CHECKS
from tidemark.testing.refusal_conformance import REFUSAL_CHECKS, Row
from tidemark.testing.sink_target import Target

RefusalCheck = Callable[[Target, Row, str], None]
TABLE_OPTIONS: tuple[dict[str, Any], ...] = (
    {"key": (), "mode": None},
    {"key": ("id",), "mode": "upsert"},
)
FILE_READERS = {"jsonl": read_jsonl, "csv": read_csv, "parquet": read_parquet}


def sqlite_target(options: dict[str, Any], spark: SparkSession, base: Path) -> Target:
    options = {"path": "out/results.db", "table": "results", **options}
    reader = functools.partial(read_table, base / "out" / "results.db", "results")
    return Target(SqliteSink, options, base, spark, reader)


def files_target(format_: str, spark: SparkSession, base: Path) -> Target:
    reader = functools.partial(FILE_READERS[format_], base / "out put")
    return Target(FilesSink, {"path": "out put", "format": format_, "partition_by": ()}, base, spark, reader)


TARGETS: dict[str, Callable[[SparkSession, Path], Target]] = {
    **{f"sqlite-{o['mode'] or 'plain'}": functools.partial(sqlite_target, o) for o in TABLE_OPTIONS},
    **{f"files-{format_}": functools.partial(files_target, format_) for format_ in FILE_READERS},
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", TARGETS)
def test_sink_keeps_the_contract(
    name: str, check: Callable[[Target], None], spark: SparkSession, tmp_path: Path
) -> None:
    check(TARGETS[name](spark, tmp_path))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("options", TABLE_OPTIONS, ids=lambda options: options["mode"] or "plain")
def test_postgres_keeps_the_contract(
    options: dict[str, Any], check: Callable[[Target], None], spark: SparkSession, tmp_path: Path, database: str
) -> None:
    reader = functools.partial(read_postgres, database, "results")
    options = {"url": database, "table": "results", **options}
    check(Target(PostgresSink, options, tmp_path, spark, reader, holds=lambda text: "\0" not in text))


LONG = ("x" * 5_000, 1)


@pytest.mark.parametrize("check", REFUSAL_CHECKS, ids=lambda check: check.__name__)
def test_sqlite_keeps_what_it_refuses(check: RefusalCheck, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with closing(sqlite3.connect(tmp_path / "out" / "results.db")) as connection:
        connection.execute("CREATE TABLE results (id TEXT CHECK (length(id) < 100), n INTEGER)")
    check(sqlite_target({"key": (), "mode": None}, spark, tmp_path), LONG, "check_failed")


@pytest.mark.parametrize("check", REFUSAL_CHECKS, ids=lambda check: check.__name__)
def test_postgres_keeps_what_it_refuses(
    check: RefusalCheck, spark: SparkSession, tmp_path: Path, database: str
) -> None:
    options = {"url": database, "table": "results", "key": (), "mode": None}
    reader = functools.partial(read_postgres, database, "results")
    check(Target(PostgresSink, options, tmp_path, spark, reader), ("nul \0", 1), "bad_text")


class Forgetful:
    """A sink without a ledger, to see that the kit notices."""

    exactly_once = True

    def __init__(self, context: SinkContext) -> None:
        self.sink = SqliteSink(context)

    def open(self) -> int | None:
        self.sink.open()
        return None

    def held(self, epoch: int) -> int | None:
        return None

    def write(self, epoch: int, rows: Any) -> int:
        return self.sink.write(epoch, rows)

    def close(self) -> None:
        self.sink.close()


@pytest.mark.parametrize("check", [CHECKS[0], CHECKS[1], CHECKS[2]], ids=lambda check: check.__name__)
def test_the_kit_notices_a_sink_that_forgets(
    check: Callable[[Target], None], spark: SparkSession, tmp_path: Path
) -> None:
    def forgetful(context: SinkContext) -> Sink:
        return Forgetful(context)

    options = {"path": "forgetful.db", "table": "results"}
    reader = functools.partial(read_table, tmp_path / "forgetful.db", "results")
    with pytest.raises(AssertionError):
        check(Target(forgetful, options, tmp_path, spark, reader))
