"""Rows that PostgreSQL refuses by their content: the rest is committed, and they are kept with the reason, once."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from connectors.arrow_rows import ArrowRows, columns_of
from connectors.postgres.writing import opened, query, run

from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.testing.sink_target import SimulatedCrash, crash_at

DEFERRED = "CREATE TABLE t (k text, n bigint, UNIQUE (k) DEFERRABLE INITIALLY DEFERRED)"
TRIGGER = (
    "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN IF new.k = 'bad' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN new; END $$"
)


def refused(sink: PostgresSink, epoch: int) -> list[dict[str, Any]]:
    return [row for batch in sink.refused_rows(epoch) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("existing", "bad", "code", "message"),
    [
        ("CREATE TABLE t (k text, n bigint)", ("nul \0 inside", 1), "bad_text", "invalid byte sequence"),
        ("CREATE TABLE t (k text, n smallint)", ("bad", 40_000), "out_of_range", "out of range"),
        ("CREATE TABLE t (k varchar(3), n bigint)", ("long", 1), "too_long", "value too long"),
        ("CREATE TABLE t (k text, n bigint CHECK (n < 100))", ("bad", 100), "check_failed", "check constraint"),
        ("CREATE TABLE t (k text, n bigint NOT NULL)", ("bad", None), "not_null", "not-null constraint"),
        ("CREATE TABLE t (k text PRIMARY KEY, n bigint)", ("a", 1), "not_unique", "duplicate key"),
        (DEFERRED, ("a", 1), "not_unique", "duplicate key"),
        ("CREATE TABLE t (k text, n bigint REFERENCES known)", ("bad", 7), "foreign_key", "foreign key constraint"),
        ("CREATE TABLE t (k uuid, n bigint)", ("bad", 1), "bad_value", "invalid input syntax for type uuid"),
        ("CREATE TABLE t (k text PRIMARY KEY, n bigint)", ("random", 1), "too_long", "index row"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 15 else None,
)
def test_a_bad_row_among_good_ones(
    existing: str, bad: tuple[str, int | None], code: str, message: str, database: str
) -> None:
    run(database, "CREATE TABLE known AS SELECT n::bigint FROM generate_series(0, 4) n",
        "ALTER TABLE known ADD PRIMARY KEY (n)", existing)  # fmt: skip
    if bad[0] == "random":
        ((text,),) = query(database, "SELECT string_agg(gen_random_uuid()::text, '') FROM generate_series(1, 200)")
        bad = (text, 1)
    names = ["a", "b", "c", "d", "e"] if "uuid" not in existing else [f"{n:032x}" for n in range(5)]
    rows = {"k": [*names[:3], bad[0], *names[3:]], "n": pa.array([0, 1, 2, bad[1], 3, 4], pa.int64())}
    with closing(opened(database)) as sink:
        assert sink.write(0, ArrowRows(rows, batch_rows=6)) == 5
        assert (sink.held(0), sink.refused(0), sink.refused(1)) == (5, 1, 0)
        (kept,) = refused(sink, 0)
    assert (kept["k"], kept["n"], kept["_error_code"]) == (*bad, code)
    assert message in kept["_error"]
    assert query(database, "SELECT count(*), sum(n)::int FROM t") == [(5, 10)]


def test_what_a_trigger_refuses_is_refused(database: str) -> None:
    run(database, "CREATE TABLE t (k text, n bigint)", TRIGGER,
        "CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()")  # fmt: skip
    with closing(opened(database)) as sink:
        assert sink.write(0, ArrowRows({"k": ["a", "bad"], "n": [1, 2]}, batch_rows=2)) == 1
        assert [(row["k"], row["_error_code"], row["_error"]) for row in refused(sink, 0)] == [
            ("bad", "refused", "not this one")
        ]


def test_a_refused_update_leaves_the_row_as_it_was(database: str) -> None:
    run(database, "CREATE TABLE t (k text PRIMARY KEY, n bigint CHECK (n < 100))")
    with closing(opened(database, key=["k"])) as sink:
        sink.write(0, ArrowRows({"k": ["a", "b"], "n": [1, 2]}, batch_rows=2))
        assert sink.write(1, ArrowRows({"k": ["a", "b", "c"], "n": [100, 3, 4]}, batch_rows=3)) == 2
        assert [row["k"] for row in refused(sink, 1)] == ["a"]
    assert query(database, "SELECT k, n FROM t ORDER BY k") == [("a", 1), ("b", 3), ("c", 4)]


def test_many_bad_rows_in_several_chunks_are_found_and_nothing_else(database: str) -> None:
    run(database, "CREATE TABLE t (k text, n bigint CHECK (n % 97 <> 0))")
    rows = ArrowRows({"k": [str(n) for n in range(5_000)], "n": list(range(5_000))}, batch_rows=1_000)
    with closing(opened(database)) as sink:
        bad = [n for n in range(5_000) if n % 97 == 0]
        assert sink.write(0, rows) == 5_000 - len(bad)
        assert [row["n"] for row in refused(sink, 0)] == bad
    assert query(database, "SELECT count(*) FROM t") == [(5_000 - len(bad),)]


def test_columns_beyond_the_tables_travel_with_a_refused_row(database: str) -> None:
    run(database, "CREATE TABLE t (k text NOT NULL, n bigint)")
    rows = {"k": pa.array([None, "a"], pa.string()), "n": [1, 2], "_event_id": ["orders/0/1", "orders/0/2"]}
    with closing(opened(database)) as sink:
        assert sink.write(0, ArrowRows(rows, batch_rows=2)) == 1
        assert [row["_event_id"] for row in refused(sink, 0)] == ["orders/0/1"]


def test_a_replay_finds_the_refused_rows_again_and_the_next_epoch_forgets_them(database: str) -> None:
    run(database, "CREATE TABLE t (k text, n bigint CHECK (n < 2))")
    rows = ArrowRows({"k": ["a", "b"], "n": [1, 2]}, batch_rows=2)
    crashing = opened(database, failpoint=crash_at("after_sink_commit"))
    with closing(crashing), pytest.raises(SimulatedCrash):
        crashing.write(0, rows)
    with closing(opened(database, attempt=2)) as sink:
        assert (sink.held(0), sink.refused(0)) == (1, 1)
        run(database, "ALTER TABLE t DROP CONSTRAINT t_n_check")
        assert [row["k"] for row in refused(sink, 0)] == ["b"]
        sink.write(1, ArrowRows({"k": ["c"], "n": [9]}))
        assert (sink.refused(0), sink.refused(1), refused(sink, 0)) == (0, 0, [])


def test_a_crash_before_the_commit_keeps_no_refused_row(database: str) -> None:
    run(database, "CREATE TABLE t (k text, n bigint CHECK (n < 2))")
    crashing = opened(database, failpoint=crash_at("before_sink_commit"))
    with closing(crashing), pytest.raises(SimulatedCrash):
        crashing.write(0, ArrowRows({"k": ["a", "b"], "n": [1, 2]}, batch_rows=2))
    assert query(database, "SELECT count(*) FROM _tidemark_refused") == [(0,)]


def test_rows_that_nobody_wants_are_only_counted(database: str) -> None:
    run(database, "CREATE TABLE t (k text, n bigint CHECK (n < 2))")
    with closing(opened(database, keeps=False)) as sink:
        assert sink.write(0, ArrowRows({"k": ["a", "b"], "n": [1, 2]}, batch_rows=2)) == 1
        assert (sink.refused(0), refused(sink, 0)) == (1, [])


def test_every_type_comes_back_from_where_refused_rows_are_kept(database: str) -> None:
    types = columns_of(k="string", m="map<string,int>", b="binary", at="timestamp")
    run(database, "CREATE TABLE t (k text, m jsonb, b bytea, at timestamptz CHECK (false))")
    rows = {
        "k": ["\0"],
        "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        "b": [b"\0"],
        "at": pa.array([1], pa.timestamp("us", tz="UTC")),
    }
    with closing(opened(database, types)) as sink:
        assert sink.write(0, ArrowRows(rows)) == 0
        (batch,) = sink.refused_rows(0)
    assert batch.select(list(rows)) == next(ArrowRows(rows).batches())
