"""Proofs that a sink keeps the contract of `connectors/connector.py`: each takes a fresh target and asserts.

For a new connector, write one test that runs every entry of CHECKS, and when its target may refuse rows another one for
those in `refusal_conformance.py`. What is special to a connector (its file
names, its table definitions) is tested beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.connector import EpochRows
from tidemark.errors import Fenced
from tidemark.testing.sink_target import (
    COLUMNS,
    FAILPOINTS,
    MANY_ROWS,
    InterruptedRows,
    ManyRows,
    SimulatedCrash,
    Target,
    crash_at,
)
from tidemark.testing.sink_values import HOSTILE_TEXTS, TYPED_VALUES

_MANY_ROWS_MEMORY = 4 * 1024 * 1024


def epochs_are_written_once(target: Target) -> None:
    sink = target.sink()
    assert sink.open() is None
    assert sink.held(0) is None
    assert sink.write(0, target.rows([("a", 1), ("b", None)])) == 2
    assert sink.write(1, target.rows([("c", 3)])) == 1
    assert (sink.held(0), sink.held(1), sink.held(2)) == (2, 1, None)
    assert target.seen() == [("a", 1), ("b", None), ("c", 3)]
    sink.close()


def a_restart_knows_what_is_held(target: Target) -> None:
    first = target.sink(1)
    first.open()
    first.write(0, target.rows([("a", 1)]))
    first.write(1, target.rows([("b", 2), ("c", 3)]))
    first.close()
    second = target.sink(2)
    assert second.open() == 1
    assert (second.held(0), second.held(1), second.held(2)) == (1, 2, None)
    assert second.write(2, target.rows([("d", 4)])) == 1
    assert target.seen() == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    second.close()


def a_crash_anywhere_leaves_each_row_once(target: Target) -> None:
    """Crashes at every failpoint in turn, each time in another epoch, and replays as the engine does."""
    expected = []
    for epoch, name in enumerate(FAILPOINTS):
        rows = target.rows([(f"{epoch}-{i}", i) for i in range(3)])
        _write_until_crash(target, 2 * epoch, epoch, name, rows)
        recovered = target.sink(2 * epoch + 1)
        recovered.open()
        assert recovered.held(epoch) == (3 if name == "after_sink_commit" else None)
        if recovered.held(epoch) is None:
            recovered.write(epoch, rows)
        recovered.close()
        expected += [(f"{epoch}-{i}", i) for i in range(3)]
        assert target.seen() == expected, name


def a_crash_before_the_commit_shows_nothing(target: Target) -> None:
    for attempt, name in enumerate(("mid_sink", "before_sink_commit")):
        _write_until_crash(target, attempt, 0, name, target.rows([("a", 1)]))
        reader = target.sink(attempt)
        assert reader.open() is None
        reader.close()
        assert target.seen() == [], name


def an_older_attempt_cannot_open(target: Target) -> None:
    newer, older = target.sink(8), target.sink(7)
    newer.open()
    _expect_fenced(older.open)
    older.close()
    newer.write(0, target.rows([("a", 1)]))
    newer.close()
    assert target.seen() == [("a", 1)]


def an_older_attempt_cannot_write(target: Target) -> None:
    older, newer = target.sink(1), target.sink(2)
    older.open()
    newer.open()
    _expect_fenced(lambda: older.write(0, target.rows([("old", 1)])))
    assert newer.held(0) is None
    newer.write(0, target.rows([("new", 1)]))
    _expect_fenced(lambda: older.held(0))
    older.close()
    newer.close()
    assert target.seen() == [("new", 1)]


def an_attempt_is_fenced_in_the_middle_of_a_write(target: Target) -> None:
    older, newer = target.sink(1), target.sink(2)
    older.open()
    interrupted = InterruptedRows(target.rows([("old", 1)]), newer.open)
    _expect_fenced(lambda: older.write(0, interrupted))
    assert interrupted.happened
    older.close()
    newer.write(0, target.rows([("new", 1)]))
    newer.close()
    assert target.seen() == [("new", 1)]


def an_empty_epoch_is_held(target: Target) -> None:
    sink = target.sink()
    sink.open()
    assert sink.write(0, target.rows([])) == 0
    assert sink.held(0) == 0
    assert target.seen() == []
    sink.close()
    again = target.sink(2)
    assert again.open() == 0
    again.close()


def epoch_ids_may_skip(target: Target) -> None:
    sink = target.sink()
    sink.open()
    for epoch in (3, 9, 12_345_678_901):
        sink.write(epoch, target.rows([(str(epoch), epoch)]))
    assert (sink.held(9), sink.held(12_345_678_901), sink.held(10)) == (1, 1, None)
    assert sorted(n for _, n in target.seen()) == [3, 9, 12_345_678_901]
    sink.close()
    again = target.sink(2)
    assert again.open() == 12_345_678_901
    again.close()


def sinks_share_a_target(target: Target) -> None:
    one, other = target.sink(1, name="one"), target.sink(1, name="other")
    one.open()
    other.open()
    one.write(0, target.rows([("a", 1)]))
    assert other.held(0) is None
    other.write(0, target.rows([("b", 2)]))
    assert target.seen() == [("a", 1), ("b", 2)]
    one.close()
    other.close()


def texts_stay_as_they_are(target: Target) -> None:
    columns = (Column(name="id", type="string"), Column(name="text", type="string"))
    values = [(f"{i:02d}", text) for i, text in enumerate((*HOSTILE_TEXTS, None))]
    sink = target.sink(columns=columns)
    sink.open()
    kept = [(id_, text) for id_, text in values if text is None or target.holds(text)]
    assert sink.write(0, target.rows(values, columns)) == len(kept)
    sink.close()
    for (_, expected), (_, seen) in zip(kept, target.seen(columns), strict=True):
        assert seen == expected


def every_type_is_kept_and_so_is_null(target: Target) -> None:
    columns = (
        Column(name="id", type="string"),
        *(Column(name=f"c{i}", type=type_) for i, (type_, _, _) in enumerate(TYPED_VALUES)),
    )
    given = [("full", *(value for _, value, _ in TYPED_VALUES)), ("null", *(None for _ in TYPED_VALUES))]
    sink = target.sink(columns=columns)
    sink.open()
    sink.write(0, target.rows(given, columns))
    sink.close()
    full, empty = target.seen(columns)
    for (type_, _, expected), seen in zip(TYPED_VALUES, full[1:], strict=True):
        assert seen == expected, type_
    assert empty == given[1]


def many_rows_pass_in_little_memory(target: Target) -> None:
    from pyspark.sql import functions as F

    rows = ManyRows(target.spark.range(MANY_ROWS).select(F.col("id").cast("string"), F.col("id").alias("n")))
    sink = target.sink()
    sink.open()
    assert sink.write(0, rows) == MANY_ROWS
    assert rows.most_memory <= _MANY_ROWS_MEMORY
    assert sink.held(0) == MANY_ROWS
    sink.close()
    assert sum(row["n"] for row in target.read(COLUMNS)) == MANY_ROWS * (MANY_ROWS - 1) // 2


def _write_until_crash(target: Target, attempt: int, epoch: int, name: str, rows: EpochRows) -> None:
    sink = target.sink(attempt, failpoint=crash_at(name))
    sink.open()
    try:
        sink.write(epoch, rows)
    except SimulatedCrash:
        return
    finally:
        sink.close()
    raise AssertionError(f"the sink never reached the failpoint {name}")


def _expect_fenced(action: Callable[[], object]) -> None:
    try:
        action()
    except Fenced:
        return
    raise AssertionError("an older attempt was not fenced")


CHECKS: tuple[Callable[[Target], None], ...] = (
    epochs_are_written_once,
    a_restart_knows_what_is_held,
    a_crash_anywhere_leaves_each_row_once,
    a_crash_before_the_commit_shows_nothing,
    an_older_attempt_cannot_open,
    an_older_attempt_cannot_write,
    an_attempt_is_fenced_in_the_middle_of_a_write,
    an_empty_epoch_is_held,
    epoch_ids_may_skip,
    sinks_share_a_target,
    texts_stay_as_they_are,
    every_type_is_kept_and_so_is_null,
    many_rows_pass_in_little_memory,
)
