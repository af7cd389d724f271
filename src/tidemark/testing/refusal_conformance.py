"""Proofs that a sink whose target refuses rows by their content keeps them as `RefusingSink` says.

Each takes a fresh target with rows that it refuses. Which rows are refused, and why, is tested beside the connector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidemark.connectors.connector import RefusingSink, Sink
from tidemark.testing.sink_target import SimulatedCrash, Target, crash_at

Row = tuple[Any, ...]


def the_rest_is_committed_and_the_refused_row_is_kept(target: Target, bad: Row, code: str) -> None:
    sink = target.sink(keeps_refused=True)
    sink.open()
    assert sink.write(0, target.rows([("a", 1), bad, ("b", 2)])) == 2
    assert (sink.held(0), _count(sink, 0), _count(sink, 1)) == (2, 1, 0)
    assert target.seen() == [("a", 1), ("b", 2)]
    assert _kept(sink, 0) == [(*bad, code)]
    assert _kept(sink, 0) == [(*bad, code)]
    sink.close()


def a_replay_finds_refused_rows_again(target: Target, bad: Row, code: str) -> None:
    _write_until(target, "after_sink_commit", [bad, ("a", 1)])
    again = target.sink(2, keeps_refused=True)
    assert again.open() == 0
    assert (again.held(0), _count(again, 0), _kept(again, 0)) == (1, 1, [(*bad, code)])
    assert target.seen() == [("a", 1)]
    again.close()


def a_crash_before_the_commit_keeps_no_refused_row(target: Target, bad: Row, code: str) -> None:
    for attempt, point in enumerate(("mid_sink", "before_sink_commit"), 1):
        _write_until(target, point, [bad, ("a", 1)], attempt)
    again = target.sink(3, keeps_refused=True)
    assert again.open() is None
    assert again.held(0) is None
    assert again.write(0, target.rows([bad, bad, ("a", 1)])) == 1
    assert _kept(again, 0) == [(*bad, code)] * 2
    again.close()


def the_next_epoch_forgets_refused_rows(target: Target, bad: Row, code: str) -> None:
    sink = target.sink(keeps_refused=True)
    sink.open()
    sink.write(0, target.rows([bad, bad, ("a", 1)]))
    sink.write(1, target.rows([("b", 2), bad]))
    assert (_count(sink, 0), _kept(sink, 0)) == (0, [])
    assert (_count(sink, 1), _kept(sink, 1)) == (1, [(*bad, code)])
    sink.write(2, target.rows([("c", 3)]))
    assert (_count(sink, 1), _count(sink, 2), _kept(sink, 2)) == (0, 0, [])
    assert target.seen() == [("a", 1), ("b", 2), ("c", 3)]
    sink.close()


def refused_rows_that_nobody_wants_are_only_counted(target: Target, bad: Row, code: str) -> None:
    sink = target.sink()
    sink.open()
    assert sink.write(0, target.rows([bad, ("a", 1)])) == 1
    assert (_count(sink, 0), _kept(sink, 0)) == (1, [])
    sink.close()


def an_epoch_of_refused_rows_only_is_held(target: Target, bad: Row, code: str) -> None:
    sink = target.sink(keeps_refused=True)
    sink.open()
    assert sink.write(0, target.rows([bad] * 40)) == 0
    assert (sink.held(0), _count(sink, 0), len(_kept(sink, 0))) == (0, 40, 40)
    sink.close()


def _write_until(target: Target, point: str, rows: list[Row], attempt: int = 1) -> None:
    sink = target.sink(attempt, failpoint=crash_at(point), keeps_refused=True)
    sink.open()
    try:
        sink.write(0, target.rows(rows))
    except SimulatedCrash:
        return
    finally:
        sink.close()
    raise AssertionError(f"the sink never reached the failpoint {point}")


def _count(sink: Sink, epoch: int) -> int:
    assert isinstance(sink, RefusingSink)
    return sink.refused(epoch)


def _kept(sink: Sink, epoch: int) -> list[Row]:
    assert isinstance(sink, RefusingSink)
    rows = [row for batch in sink.refused_rows(epoch) for row in batch.to_pylist()]
    assert all(row["_error"] for row in rows)
    return [(row["id"], row["n"], row["_error_code"]) for row in rows]


REFUSAL_CHECKS: tuple[Callable[[Target, Row, str], None], ...] = (
    the_rest_is_committed_and_the_refused_row_is_kept,
    a_replay_finds_refused_rows_again,
    a_crash_before_the_commit_keeps_no_refused_row,
    the_next_epoch_forgets_refused_rows,
    refused_rows_that_nobody_wants_are_only_counted,
    an_epoch_of_refused_rows_only_is_held,
)
