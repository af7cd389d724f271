"""The PostgreSQL sink beyond the common contract: keys, nulls, names, types, tables that do not fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
import pytest
from connectors.arrow_rows import ArrowRows, columns_of
from connectors.postgres.writing import COLUMNS, opened, query, run

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.postgres.options import split_table
from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.errors import SinkMismatch, StateFault


class Open(Protocol):
    def __call__(self, columns: tuple[Column, ...] = COLUMNS, **options: Any) -> PostgresSink: ...


@pytest.fixture
def sink(database: str) -> Iterator[Open]:
    """Opens sinks on the test's database; all are closed at its end."""
    with ExitStack() as stack:

        def open_sink(columns: tuple[Column, ...] = COLUMNS, **options: Any) -> PostgresSink:
            made = opened(database, columns, **options)
            stack.callback(made.close)
            return made

        yield open_sink


def test_the_later_row_of_a_key_wins_within_a_chunk_and_across_them(sink: Open, database: str) -> None:
    out = sink(key=["k"])
    assert out.write(0, ArrowRows({"k": ["a", "b", "a"], "n": [1, 2, 3]}, batch_rows=3)) == 3
    out.write(1, ArrowRows({"k": ["b", "b"], "n": [8, 9]}, batch_rows=1))
    assert query(database, "SELECT k, n FROM t ORDER BY k") == [("a", 3), ("b", 9)]


def test_rows_that_are_all_key_are_kept_once(sink: Open, database: str) -> None:
    out = sink(key=["n", "k"])
    out.write(0, ArrowRows({"k": ["a", "a"], "n": [1, 1]}))
    assert query(database, "SELECT k, n FROM t") == [("a", 1)]


@pytest.mark.parametrize("existing", ["", "CREATE TABLE t (k text UNIQUE, n bigint)"])
def test_a_null_key_is_a_key(existing: str, sink: Open, database: str) -> None:
    run(database, existing or "SELECT 1")
    out = sink(key=["k"])
    for epoch in range(3):
        rows = {"k": pa.array([None, None, "a"], pa.string()), "n": [epoch, 10 + epoch, epoch]}
        out.write(epoch, ArrowRows(rows, batch_rows=3))
    assert query(database, "SELECT k, n FROM t ORDER BY n") == [("a", 2), (None, 12)]


def test_nan_is_a_value_and_a_key(sink: Open, database: str) -> None:
    out = sink(columns_of(a="double", n="float"), key=["a"])
    for epoch, n in enumerate((math.nan, -math.inf)):
        rows = {"a": [math.nan, 1.0], "n": pa.array([n, n], pa.float32())}
        out.write(epoch, ArrowRows(rows, batch_rows=2))
    assert query(database, "SELECT a::text, n::text FROM t ORDER BY a") == [("1", "-Infinity"), ("NaN", "-Infinity")]


def test_append_keeps_rows_of_the_same_key(sink: Open, database: str) -> None:
    sink(key=["k"], mode="append").write(0, ArrowRows({"k": ["a", "a"], "n": [1, 1]}))
    assert query(database, "SELECT k, n FROM t") == [("a", 1), ("a", 1)]


def test_times_are_points_in_time_and_old_ones_are_not_lost(sink: Open, database: str) -> None:
    micros = [0, -1, -62_135_596_800_000_001, 253_402_300_800_000_000]
    days = [0, -719_163, -719_162, 2_932_897]
    rows = {"at": pa.array(micros, pa.timestamp("us", tz="UTC")), "d": pa.array(days, pa.date32())}
    assert sink(columns_of(at="timestamp", d="date")).write(0, ArrowRows(rows, batch_rows=4)) == 4
    assert query(database, "SELECT at::text, d::text FROM t ORDER BY t.at") == [
        ("0001-12-31 23:59:59.999999+00 BC", "0001-01-01"),
        ("1969-12-31 23:59:59.999999+00", "0001-12-31 BC"),
        ("1970-01-01 00:00:00+00", "1970-01-01"),
        ("10000-01-01 00:00:00+00", "10000-01-01"),
    ]


def test_the_zone_of_the_url_changes_nothing(database: str) -> None:
    at = pa.array([datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    elsewhere = f"{database}?options=-c%20timezone%3DAsia/Kathmandu"
    with closing(opened(elsewhere, columns_of(at="timestamp"))) as out:
        out.write(0, ArrowRows({"at": at}))
    assert query(database, "SELECT at::text FROM t") == [("2026-01-02 03:04:05+00",)]


def test_what_describes_a_dead_letter_is_no_reason_to_lose_it(sink: Open, database: str) -> None:
    columns = columns_of(_raw="binary", _error="string", _key="string", _headers="map<string,string>")
    headers = pa.array([[("a\\", "\0\0x\\")]], pa.map_(pa.string(), pa.string()))
    rows = {"_raw": pa.array([b"\0\xff"]), "_error": ["bad \0"], "_key": ["\0"], "_headers": headers}
    assert sink(columns).write(0, ArrowRows(rows)) == 1
    kept = [(b"\0\xff", "bad \u2400", "\u2400", {"a\\": "\u2400\u2400x\\"})]
    assert query(database, "SELECT _raw, _error, _key, _headers FROM t") == kept


def test_hostile_names_are_only_names(sink: Open, database: str) -> None:
    columns = (Column(name='a"; DROP TABLE t; --', type="string"), Column(name="select %s", type="long"))
    options = {"table": '"odd.schema"."t"" (x); --"', "key": [columns[0].name]}
    run(database, 'CREATE SCHEMA "odd.schema"')
    sink(columns, **options).write(0, ArrowRows({columns[0].name: ["v", "v"], columns[1].name: [1, 2]}))
    assert query(database, 'SELECT * FROM "odd.schema"."t"" (x); --"') == [("v", 2)]
    assert query(database, 'SELECT sink, rows FROM "odd.schema"._tidemark_ledger') == [("out", 2)]
    sink(columns, attempt=2, **options)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", (None, "t")),
        ("s.T", ("s", "T")),
        ('"a.b".t', ("a.b", "t")),
        ('"a""b"', (None, 'a"b')),
        ("a.b.c", None),
        ('a"b', None),
        ("", None),
        (".t", None),
    ],
)
def test_a_table_may_stand_in_a_schema(text: str, parts: tuple[str | None, str] | None) -> None:
    assert split_table(text) == parts


def test_column_types_of_a_new_table(sink: Open, database: str) -> None:
    types = ("string", "int", "long", "float", "double", "boolean", "date", "binary", "timestamp", "decimal(9,2)")
    sink(columns_of(**{f"c{i}": type_ for i, type_ in enumerate((*types, "array<int>", "map<string,int>"))}))
    declared = query(
        database,
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert [type_ for (type_,) in declared] == [
        "text", "integer", "bigint", "real", "double precision", "boolean", "date", "bytea",
        "timestamp with time zone", "numeric(9,2)", "jsonb", "jsonb",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ("CREATE TABLE t (k text PRIMARY KEY)", "has no column 'n'"),
        ('CREATE TABLE t (k text PRIMARY KEY, "N" bigint)', "has no column 'n'"),
        ("CREATE TABLE t (k integer PRIMARY KEY, n bigint)", "column 'k' of table 't' is integer"),
        ("CREATE TABLE t (k text PRIMARY KEY, n real)", "column 'n' of table 't' is real, which cannot hold long"),
        ("CREATE TABLE t (k text, n bigint)", "no unique index over the key 'k'"),
        ("CREATE TABLE t (k text, n bigint, PRIMARY KEY (k, n))", "no unique index over the key 'k'"),
        ("CREATE TABLE t (k text UNIQUE DEFERRABLE, n bigint)", "no unique index over the key 'k'"),
        ("CREATE TABLE t (k text PRIMARY KEY, n bigint, more text NOT NULL)", "column 'more'"),
        ("CREATE TABLE t (k text PRIMARY KEY, n bigint GENERATED ALWAYS AS (1) STORED)", "'n' of table 't' is gener"),
        ("CREATE VIEW t AS SELECT 'a' AS k, 2::bigint AS n", "is a view"),
    ],
)
def test_an_existing_table_that_does_not_fit_is_named_at_open(
    existing: str, message: str, sink: Open, database: str
) -> None:
    run(database, existing)
    with pytest.raises(SinkMismatch, match=message) as caught:
        sink(key=["k"])
    assert caught.value.hint
    assert caught.value.step == "out"
    assert query(database, "SELECT to_regclass('_tidemark_ledger')") == [(None,)]


def test_decimals_are_never_rounded(sink: Open, database: str) -> None:
    run(database, "CREATE TABLE t (d numeric(10,1))")
    with pytest.raises(SinkMismatch, match=r"numeric\(10,1\), which cannot hold decimal\(10,2\)"):
        sink(columns_of(d="decimal(10,2)"))


def test_an_existing_table_may_have_more_and_other_words_for_the_types(sink: Open, database: str) -> None:
    run(
        database,
        "CREATE TYPE mood AS ENUM ('ok', 'bad')",
        "CREATE DOMAIN short AS varchar(9)",
        "CREATE TABLE t (id serial, u uuid UNIQUE, m mood, s short, n smallint, at timestamp, x text DEFAULT 'x')",
    )
    out = sink(columns_of(u="string", m="string", s="string", n="long", at="timestamp"), key=["u"])
    at = pa.array([0], pa.timestamp("us", tz="UTC"))
    id_ = "b1d3a9e0-0000-4000-8000-000000000001"
    out.write(0, ArrowRows({"u": [id_], "m": ["ok"], "s": ["s"], "n": [7], "at": at}))
    found = query(database, "SELECT u::text, m::text, s, n, at, x FROM t")
    assert found == [(id_, "ok", "s", 7, datetime(1970, 1, 1), "x")]


@pytest.mark.parametrize("table", ["_tidemark_ledger", "_tidemark_refused"])
def test_a_name_of_our_own_is_refused(table: str, sink: Open) -> None:
    with pytest.raises(SinkMismatch, match="own"):
        sink(table=table)


@pytest.mark.parametrize("epoch", [3, 4])
def test_an_old_epoch_is_never_written_again(epoch: int, sink: Open, database: str) -> None:
    out = sink()
    out.write(4, ArrowRows({"k": ["a"], "n": [1]}))
    with pytest.raises(StateFault):
        out.write(epoch, ArrowRows({"k": ["b"], "n": [1]}))
    assert query(database, "SELECT k FROM t") == [("a",)]


def test_two_jobs_that_open_at_once_share_the_ledger(sink: Open, database: str) -> None:
    sink(table="one")
    sink(table="other", attempt=2)
    assert query(database, "SELECT count(*) FROM _tidemark_ledger") == [(1,)]
