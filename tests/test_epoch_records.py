"""From where a query reads again, and how many events that is, by the records that its driver has left."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_epochs import recorded

from tidemark.epoch_records import EpochRecords
from tidemark.errors import StateFault

WINDOW_MS = 10_000


def test_a_replay_begins_behind_the_last_epoch_whose_windows_are_all_closed(tmp_path: Path) -> None:
    records = recorded(tmp_path, range(40))
    start = records.replay_start(39, records.watermark_ms(39), WINDOW_MS)
    assert start is not None
    assert start.after == 29
    assert start.events_until(records.read(39)) == 100


def test_a_young_query_is_read_from_the_beginning(tmp_path: Path) -> None:
    records = recorded(tmp_path, range(4))
    start = records.replay_start(3, records.watermark_ms(3), WINDOW_MS)
    assert start is not None
    assert (start.after, start.events_until(records.read(3))) == (None, 40)


def test_epochs_that_do_not_reach_back_are_no_beginning(tmp_path: Path) -> None:
    records = recorded(tmp_path, range(35, 40))
    assert records.replay_start(39, 39_000, WINDOW_MS) is None


def test_an_epoch_beyond_the_last_does_not_count(tmp_path: Path) -> None:
    records = recorded(tmp_path, range(40))
    start = records.replay_start(30, records.watermark_ms(30), WINDOW_MS)
    assert start is not None
    assert start.after == 20


def test_events_that_nobody_counted_are_not_guessed(tmp_path: Path) -> None:
    records = recorded(tmp_path, range(40), counted=False)
    start = records.replay_start(39, 39_000, WINDOW_MS)
    assert start is not None
    assert start.events_until({"events": 400}) is None


def test_an_epoch_without_its_log_entry_is_not_known(tmp_path: Path) -> None:
    records = recorded(tmp_path, range(3))
    (tmp_path / "tidemark" / "offsets-1").unlink()
    assert records.known() == [0, 2]
    with pytest.raises(StateFault, match="log entry of epoch 1"):
        records.watermark_ms(1)


def test_nothing_is_known_before_the_first_epoch(tmp_path: Path) -> None:
    assert EpochRecords(tmp_path).known() == []
