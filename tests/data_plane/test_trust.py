"""What an epoch is read in trust of: found out when it has been computed, and told before anything commits."""

from __future__ import annotations

import pytest

from tidemark.data_plane.checkpoint import Note
from tidemark.data_plane.epoch.trust import Lines, Outgrown, Trust

LINES = {"events": 3}


def test_an_epoch_that_holds_what_was_trusted_goes_on() -> None:
    remembered: list[Note] = []
    trust = Trust(remembered.append)
    asked: list[str] = []

    def in_time() -> bool:
        asked.append("in time")
        return True

    with trust.during(lambda: LINES, in_time):
        trust.settle()
        trust.settle()
        assert trust.lines() == LINES
    assert (remembered, asked) == ([], ["in time"])


def test_where_no_lines_are_looked_at_none_are_told() -> None:
    trust = Trust(lambda note: None)
    with trust.during(None, None):
        assert trust.lines() == {}


def test_lines_are_looked_at_once_and_when_the_epoch_has_been_computed() -> None:
    looked: list[str] = []
    trust = Trust(lambda note: None)

    def look() -> Lines:
        looked.append("looked")
        return LINES

    with trust.during(look, None):
        assert looked == []
        assert (trust.lines(), trust.lines()) == (LINES, LINES)
        trust.settle()
    assert looked == ["looked"]
    with trust.during(look, None):
        pass
    assert looked == ["looked", "looked"]


@pytest.mark.parametrize(
    ("flat", "in_time", "note"), [(None, True, Note.LINES_TO_DECODE), (LINES, False, Note.EVENTS_AHEAD)]
)
def test_a_sink_that_asks_to_commit_is_told(flat: Lines, in_time: bool, note: Note) -> None:
    remembered: list[Note] = []
    trust = Trust(remembered.append)
    committed: list[str] = []

    def commit() -> None:
        with trust.during(lambda: flat, lambda: in_time):
            trust.settle()
            committed.append("committed")

    with pytest.raises(Outgrown):
        commit()
    assert committed == []
    assert set(remembered) == {note}


def test_a_failure_of_an_epoch_that_was_read_the_wrong_way_means_nothing() -> None:
    trust = Trust(lambda note: None)
    with pytest.raises(Outgrown), trust.during(lambda: None, None):
        raise ValueError("cannot be read")
    with pytest.raises(ValueError, match="cannot be read"), trust.during(lambda: LINES, None):
        raise ValueError("cannot be read")


def test_what_goes_wrong_in_looking_fails_the_epoch() -> None:
    def look() -> Lines:
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError), Trust(lambda note: None).during(look, None):
        pass
