"""The SQLite sink beyond the common contract: keys, nulls, names, failures of the database."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from connectors.arrow_rows import ArrowRows, columns_of, context_for

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.sqlite import sink as sqlite_sink
from tidemark.connectors.sqlite.faults import sqlite_fault
from tidemark.connectors.sqlite.ledger import Ledger
from tidemark.connectors.sqlite.sink import SqliteSink
from tidemark.errors import DiskFull, SinkFailure, SinkMismatch, SinkUnavailable, StateFault
from tidemark.testing.sink_target import SimulatedCrash

COLUMNS = columns_of(k="string", n="long")


def opened(base: Path, columns: tuple[Column, ...] = COLUMNS, **options: Any) -> SqliteSink:
    sink = SqliteSink(context_for(base, {"path": "db", "table": "t", **options}, columns))
    sink.open()
    return sink


def query(base: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(base / "db")) as connection:
        return connection.execute(sql).fetchall()


def run(base: Path, sql: str) -> None:
    with closing(sqlite3.connect(base / "db")) as connection, connection:
        connection.execute(sql)


def test_the_later_row_of_a_key_wins(tmp_path: Path) -> None:
    sink = opened(tmp_path, key=["k"])
    assert sink.write(0, ArrowRows({"k": ["a", "b", "a"], "n": [1, 2, 3]})) == 3
    sink.write(1, ArrowRows({"k": ["b", "b"], "n": [8, 9]}, batch_rows=2))
    assert query(tmp_path, "SELECT k, n FROM t ORDER BY k") == [("a", 3), ("b", 9)]


def test_rows_that_are_all_key_are_kept_once(tmp_path: Path) -> None:
    sink = opened(tmp_path, key=["n", "k"])
    sink.write(0, ArrowRows({"k": ["a", "a"], "n": [1, 1]}))
    assert query(tmp_path, "SELECT k, n FROM t") == [("a", 1)]


@pytest.mark.parametrize("type_", ["string", "int", "long", "double"])
def test_a_null_key_is_a_key(type_: str, tmp_path: Path) -> None:
    arrow = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}[type_]
    sink = opened(tmp_path, columns_of(k=type_, n="long"), key=["k"])
    for epoch in range(3):
        sink.write(epoch, ArrowRows({"k": pa.array([None, None], arrow), "n": [epoch, 10 + epoch]}, batch_rows=2))
    assert query(tmp_path, "SELECT k, n FROM t") == [(None, 12)]


def test_nan_is_stored_as_null_and_replaces_itself(tmp_path: Path) -> None:
    sink = opened(tmp_path, columns_of(a="double", b="string", n="double"), key=["b", "a"])
    for epoch, n in enumerate((math.nan, math.inf)):
        sink.write(epoch, ArrowRows({"a": [math.nan, 1.0], "b": ["x", "x"], "n": [n, n]}, batch_rows=2))
    assert query(tmp_path, "SELECT a, b, n FROM t ORDER BY a") == [(None, "x", math.inf), (1.0, "x", math.inf)]


def test_append_keeps_rows_of_the_same_key(tmp_path: Path) -> None:
    sink = opened(tmp_path, key=["k"], mode="append")
    sink.write(0, ArrowRows({"k": ["a", "a"], "n": [1, 1]}))
    assert query(tmp_path, "SELECT k, n FROM t") == [("a", 1), ("a", 1)]


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    columns = (Column(name='a"; DROP TABLE t; --', type="string"), Column(name="select ?", type="long"))
    sink = opened(tmp_path, columns, table='t" (x); --', key=[columns[0].name])
    sink.write(0, ArrowRows({columns[0].name: ["v", "v"], columns[1].name: [1, 2]}))
    assert query(tmp_path, 'SELECT * FROM "t"" (x); --"') == [("v", 2)]
    opened(tmp_path, columns, table='t" (x); --', key=[columns[0].name])


@pytest.mark.parametrize("table", ["_tidemark_ledger", "_TIDEMARK_LEDGER", "nul\0", "sqlite_own"])
def test_a_name_that_cannot_be_a_table_is_refused(table: str, tmp_path: Path) -> None:
    with pytest.raises(SinkMismatch):
        opened(tmp_path, table=table)


def test_column_types_of_a_new_table(tmp_path: Path) -> None:
    opened(tmp_path, columns_of(a="string", b="long", c="double", d="timestamp", e="binary", f="array<int>"), key=["b"])
    declared = query(tmp_path, "SELECT name, type, pk FROM pragma_table_info('t')")
    assert declared == [
        ("a", "TEXT", 0), ("b", "INT", 1), ("c", "REAL", 0), ("d", "TEXT", 0), ("e", "BLOB", 0), ("f", "TEXT", 0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ("CREATE TABLE t (k TEXT PRIMARY KEY)", "has no column 'n'"),
        ("CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER)", "column 'k' of table 't' is INTEGER"),
        ("CREATE TABLE t (k TEXT PRIMARY KEY, n REAL)", "column 'n' of table 't' is REAL, which cannot hold long"),
        ("CREATE TABLE t (k TEXT PRIMARY KEY, n TEXT)", "column 'n'"),
        ("CREATE TABLE t (k TEXT, n INTEGER)", "no unique index over the key 'k'"),
        ("CREATE TABLE t (k TEXT, n INTEGER, PRIMARY KEY (k, n))", "no unique index over the key 'k'"),
        ("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, more TEXT NOT NULL)", "column 'more'"),
        ("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER GENERATED ALWAYS AS (1))", "has no column 'n'"),
        ("CREATE VIEW t AS SELECT 1 AS k, 2 AS n", "is a view"),
    ],
)
def test_an_existing_table_that_does_not_fit_is_named_at_open(existing: str, message: str, tmp_path: Path) -> None:
    run(tmp_path, existing)
    with pytest.raises(SinkMismatch, match=message) as caught:
        opened(tmp_path, key=["k"])
    assert caught.value.hint
    assert caught.value.step == "out"


def test_an_existing_table_may_have_more_and_other_words_for_the_types(tmp_path: Path) -> None:
    run(tmp_path, "CREATE TABLE T (more TEXT DEFAULT 'x', At TIMESTAMP, N BIGINT, d DATE, u VARCHAR(9) UNIQUE)")
    sink = opened(tmp_path, columns_of(u="string", n="int", at="timestamp", d="date"), key=["u"])
    at = pa.array([0], pa.timestamp("us", tz="UTC"))
    sink.write(0, ArrowRows({"u": ["007"], "n": pa.array([7], pa.int32()), "at": at, "d": pa.array([0], pa.date32())}))
    assert query(tmp_path, "SELECT * FROM t") == [("x", "1970-01-01T00:00:00Z", 7, "1970-01-01", "007")]


def test_a_refused_open_leaves_no_trace_in_the_ledger(tmp_path: Path) -> None:
    run(tmp_path, "CREATE TABLE t (k TEXT)")
    with pytest.raises(SinkMismatch):
        opened(tmp_path)
    assert query(tmp_path, "SELECT name FROM sqlite_master") == [("t",)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_sink, "BUSY_TIMEOUT_SECONDS", 0.05)


@pytest.mark.usefixtures("impatient")
def test_a_locked_database_is_unavailable_until_it_is_free(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    rows = ArrowRows({"k": ["a"], "n": [1]})
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SinkUnavailable, match="locked"):
            sink.write(0, rows)
        with pytest.raises(SinkUnavailable, match="locked"):
            opened(tmp_path)
        other.execute("ROLLBACK")
    assert sink.held(0) is None
    assert sink.write(0, rows) == 1


def test_a_reader_in_the_middle_of_its_work_does_not_block_a_commit(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.write(0, ArrowRows({"k": ["a", "b"], "n": [1, 2]}))
    with closing(sqlite3.connect(tmp_path / "db")) as reader:
        cursor = reader.execute("SELECT k FROM t ORDER BY k")
        assert cursor.fetchone() == ("a",)
        sink.write(1, ArrowRows({"k": ["c"], "n": [3]}))
        assert cursor.fetchall() == [("b",)]


def test_a_writing_thread_other_than_the_opening_one(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    thread = threading.Thread(target=sink.write, args=(0, ArrowRows({"k": ["a"], "n": [1]})))
    thread.start()
    thread.join()
    assert sink.held(0) == 1


def not_a_database(path: Path) -> None:
    path.write_text("this is text, long enough to be more than a header " * 50)


def damaged_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (k TEXT, n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("x" * 500, n) for n in range(100)])
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xaa" * 3996
    path.write_bytes(content)


@pytest.mark.parametrize("spoil", [not_a_database, damaged_database, Path.mkdir])
def test_a_file_that_is_no_usable_database_is_a_mismatch(spoil: Any, tmp_path: Path) -> None:
    spoil(tmp_path / "db")
    with pytest.raises(SinkMismatch, match="db"):
        opened(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_mismatch(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SinkMismatch, match="file"):
        opened(tmp_path, path="file/below/db")


def test_a_full_disk_shows_nothing_of_the_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect_to_small_disk(path: Path) -> sqlite3.Connection:
        connection = original(path)
        connection.execute("PRAGMA max_page_count = 20")
        return connection

    original = sqlite_sink.connect
    monkeypatch.setattr(sqlite_sink, "connect", connect_to_small_disk)
    sink = opened(tmp_path)
    sink.write(0, ArrowRows({"k": ["a"], "n": [1]}))
    with pytest.raises(DiskFull):
        sink.write(1, ArrowRows({"k": ["x" * 1000] * 1000, "n": [2] * 1000}, batch_rows=100))
    assert sink.held(1) is None
    assert sink.write(1, ArrowRows({"k": ["b"], "n": [2]})) == 1
    assert query(tmp_path, "SELECT k FROM t") == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("existing", "bad", "code"),
    [
        ("CREATE TABLE t (k TEXT, n INTEGER CHECK (n < 100))", ("bad", 100), "check_failed"),
        ("CREATE TABLE t (k TEXT NOT NULL, n INTEGER)", (None, 1), "not_null"),
        ("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER)", ("a", 1), "not_unique"),
        ("CREATE TABLE t (k TEXT, n INTEGER UNIQUE)", ("bad", 2), "not_unique"),
        (
            "CREATE TABLE t (k TEXT, n INTEGER); CREATE TRIGGER no BEFORE INSERT ON t WHEN new.k = 'bad' "
            "BEGIN SELECT raise(ABORT, 'not this one'); END",
            ("bad", 9),
            "refused",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 15 else None,
)
def test_a_row_refused_by_the_users_table_is_kept_and_the_rest_is_committed(
    existing: str, bad: tuple[str | None, int], code: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "db")) as connection:
        connection.executescript(existing)
    sink = SqliteSink(context_for(tmp_path, {"path": "db", "table": "t"}, COLUMNS, keeps_refused=True))
    sink.open()
    rows = {"k": pa.array(["a", "b", bad[0], "c"], pa.string()), "n": [1, 2, bad[1], 3]}
    assert sink.write(0, ArrowRows(rows, batch_rows=4)) == 3
    assert (sink.held(0), sink.refused(0)) == (3, 1)
    (batch,) = sink.refused_rows(0)
    ((k, n, found, reason),) = [tuple(row.values()) for row in batch.to_pylist()]
    assert (k, n, found) == (*bad, code)
    assert reason
    assert query(tmp_path, "SELECT k, n FROM t ORDER BY n") == [("a", 1), ("b", 2), ("c", 3)]
    assert sink.write(1, ArrowRows({"k": ["d"], "n": [4]})) == 1
    assert (sink.refused(0), list(sink.refused_rows(0))) == (0, [])


def test_refused_rows_that_nobody_wants_are_only_counted(tmp_path: Path) -> None:
    run(tmp_path, "CREATE TABLE t (k TEXT, n INTEGER CHECK (n < 2))")
    sink = opened(tmp_path)
    assert sink.write(0, ArrowRows({"k": ["a", "b"], "n": [1, 2]})) == 1
    assert (sink.refused(0), list(sink.refused_rows(0))) == (1, [])


def test_a_table_that_rolls_back_everything_for_one_row_is_a_mismatch(tmp_path: Path) -> None:
    run(tmp_path, "CREATE TABLE t (k TEXT, n INTEGER UNIQUE ON CONFLICT ROLLBACK)")
    sink = opened(tmp_path)
    with pytest.raises(SinkMismatch, match="constraint"):
        sink.write(0, ArrowRows({"k": ["a", "b"], "n": [1, 1]}, batch_rows=2))
    assert sink.held(0) is None
    assert query(tmp_path, "SELECT * FROM t") == []


class BrokenRows(ArrowRows):
    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from super().batches()
        raise ConnectionResetError("the driver is gone")


def test_rows_that_stop_coming_are_not_a_failure_of_the_database(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    with pytest.raises(ConnectionResetError):
        sink.write(0, BrokenRows({"k": ["a", "b"], "n": [1, 2]}))
    assert sink.held(0) is None
    assert query(tmp_path, "SELECT * FROM t") == []
    assert sink.write(0, ArrowRows({"k": ["a"], "n": [1]})) == 1


def test_rows_without_their_ledger_entry_are_never_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SimulatedCrash

    sink = opened(tmp_path)
    monkeypatch.setattr(Ledger, "record", fail)
    with pytest.raises(SimulatedCrash):
        sink.write(0, ArrowRows({"k": ["a"], "n": [1]}))
    assert query(tmp_path, "SELECT * FROM t") == []


@pytest.mark.parametrize("epoch", [3, 4])
def test_an_old_epoch_is_never_written_again(epoch: int, tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.write(4, ArrowRows({"k": ["a"], "n": [1]}))
    with pytest.raises(StateFault):
        sink.write(epoch, ArrowRows({"k": ["b"], "n": [1]}))
    assert query(tmp_path, "SELECT k FROM t") == [("a",)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, SinkUnavailable),
        (sqlite3.SQLITE_LOCKED, SinkUnavailable),
        (sqlite3.SQLITE_FULL, DiskFull),
        (sqlite3.SQLITE_CORRUPT_INDEX, SinkMismatch),
        (sqlite3.SQLITE_READONLY_DBMOVED, SinkMismatch),
        (sqlite3.SQLITE_CONSTRAINT_NOTNULL, SinkMismatch),
        (sqlite3.SQLITE_IOERR_WRITE, SinkFailure),
    ],
)
def test_extended_error_codes_are_told_apart(code: int, kind: type[SinkFailure]) -> None:
    error = sqlite3.OperationalError("reason")
    error.sqlite_errorcode = code
    fault = sqlite_fault(error, Path("db"), "out")
    assert type(fault) is kind
    assert fault.hint
    assert fault.step == "out"
