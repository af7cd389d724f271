"""Patience with a sink that is unavailable, and rows that are computed once however often it starts over."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from connectors.arrow_rows import ArrowRows, columns_of, context_for
from pyspark.sql import SparkSession

from tidemark.connectors.catalogue import BY_NAME
from tidemark.connectors.connector import EpochRows, RefusingSink
from tidemark.connectors.runtime import SINKS
from tidemark.data_plane.epoch.rows import SinkRows
from tidemark.data_plane.epoch.sinks import SinkWriter
from tidemark.errors import Fenced, SinkUnavailable


@dataclass
class Flaky:
    """A sink that is down for so many calls; with `lost` it commits in the first of them all the same."""

    down: int = 0
    lost: bool = False
    committed: dict[int, int] = field(default_factory=dict)
    writes: int = 0
    exactly_once: bool = True

    def open(self) -> int | None:
        self._answer()
        return max(self.committed, default=None)

    def held(self, epoch: int) -> int | None:
        self._answer()
        return self.committed.get(epoch)

    def write(self, epoch: int, rows: EpochRows) -> int:
        self.writes += 1
        if self.lost:
            self.committed[epoch] = 2
        self._answer()
        self.committed[epoch] = 2
        return 2

    def close(self) -> None: ...

    def _answer(self) -> None:
        if self.down:
            self.down -= 1
            raise SinkUnavailable("down", step="out")


ROWS = ArrowRows({"k": ["a", "b"]})


def test_pauses_grow_up_to_a_limit_and_end_with_the_outage() -> None:
    pauses: list[float] = []
    assert SinkWriter(300_000, pauses.append).write(Flaky(down=9), 0, ROWS) == 2
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]


def test_a_commit_whose_answer_was_lost_is_not_made_again() -> None:
    sink = Flaky(down=1, lost=True)
    assert SinkWriter(60_000, lambda _: None).write(sink, 0, ROWS) == 2
    assert sink.writes == 1


@pytest.mark.parametrize("call", ["open", "held"])
def test_the_ledger_is_asked_with_the_same_patience(call: str) -> None:
    sink = Flaky(down=3, committed={0: 2})
    pauses: list[float] = []
    writer = SinkWriter(60_000, pauses.append)
    assert (writer.patiently(sink.open) if call == "open" else writer.held(sink, 0)) == (0 if call == "open" else 2)
    assert len(pauses) == 3


def test_patience_ends() -> None:
    with pytest.raises(SinkUnavailable):
        SinkWriter(100, lambda _: None).write(Flaky(down=1), 0, ROWS)


def test_other_failures_are_not_tried_again() -> None:
    def fail() -> None:
        raise Fenced("a newer attempt", step="out")

    with pytest.raises(Fenced):
        SinkWriter(60_000, lambda _: pytest.fail("it was tried again")).patiently(fail)


def test_sinks_have_an_errors_port_exactly_when_they_refuse_rows() -> None:
    given: dict[str, dict[str, Any]] = {
        "console": {},
        "files": {"path": "p", "format": "jsonl"},
        "kafka": {"topic": "t", "servers": "s"},
        "postgres": {"url": "postgresql://h/d", "table": "t"},
        "sqlite": {"path": "p", "table": "t"},
    }
    assert set(given) == set(SINKS)
    loose = ("kafka", {**given["kafka"], "delivery": "at_least_once"})
    for name, options in (*given.items(), loose):
        model = BY_NAME[name].sink
        assert model is not None
        checked = model.model_validate(options)
        context = context_for(Path(), checked.planned(), columns_of(k="string"))
        assert isinstance(SINKS[name](context), RefusingSink) == checked.refuses, name


@pytest.mark.parametrize("taken", [[], [0], [1], [3], [1, 2, 1], [3, 3]])
def test_rows_are_computed_once_and_given_as_often_as_asked(
    taken: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    """Each time that the plan runs, every row leaves a file."""

    def leave_a_file(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(batch.num_rows):
                tempfile.mkstemp(dir=tmp_path)
            yield batch

    frame = spark.range(0, 9, 1, 3).mapInArrow(leave_a_file, "id long")
    with SinkRows(frame, lambda: [frame.id]) as rows:
        assert not list(tmp_path.iterdir()), "nothing runs until the sink asks"
        for count in taken:
            list(islice(rows.batches(), count))
        first, again = list(rows.batches()), list(rows.batches())
    assert first == again
    assert sorted(n for batch in first for n in batch.column(0).to_pylist()) == list(range(9))
    assert len(list(tmp_path.iterdir())) == 9


def test_rows_of_a_real_frame_can_be_taken_up_again(spark: SparkSession) -> None:
    frame = spark.range(0, 40_000, 1, 2)
    with SinkRows(frame, lambda: [frame.id]) as rows:
        first = next(iter(rows.batches()))
        again = list(rows.batches())
    assert again[0] == first
    assert sorted(n for batch in again for n in batch.column(0).to_pylist()) == list(range(40_000))
