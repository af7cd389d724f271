"""One pointer decides which state of a job counts, at every instant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidemark.errors import StateFault
from tidemark.generations import Generations

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def generations(tmp_path: Path) -> Generations:
    (tmp_path / "query").mkdir()
    (tmp_path / "lock").touch()
    (tmp_path / "finished").touch()
    return Generations(tmp_path)


def switch(generations: Generations, name: str) -> None:
    with generations.draft() as draft:
        (draft / name).mkdir()
        generations.switch(draft, name, {name: 1}, STARTED)


def queries(generations: Generations) -> list[str]:
    return sorted(path.name for path in generations.current.iterdir() if path.is_dir() and path.name[0] != ".")


def test_a_job_begins_with_its_queries_in_the_state_folder(generations: Generations, tmp_path: Path) -> None:
    assert generations.current == tmp_path
    assert queries(generations) == ["query"]


def test_a_draft_counts_only_when_it_was_switched_to(generations: Generations) -> None:
    with generations.draft() as draft:
        (draft / "half").mkdir()
    assert queries(generations) == ["query"]
    switch(generations, "second")
    assert queries(generations) == ["second"]
    assert (generations.pointer.origin, generations.pointer.base) == ("second", {"second": 1})


def test_falling_back_brings_the_state_before_back(generations: Generations) -> None:
    switch(generations, "second")
    generations.fall_back()
    assert queries(generations) == ["query"]
    assert generations.pointer.first_started_at == STARTED
    generations.fall_back()
    assert queries(generations) == ["query"]


def test_what_no_longer_counts_is_removed_and_nothing_else(generations: Generations, tmp_path: Path) -> None:
    switch(generations, "second")
    switch(generations, "third")
    (tmp_path / ".draft-left").mkdir()
    generations.forget_others()
    assert queries(generations) == ["third"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == [
        "current.json",
        "finished",
        "lock",
    ]
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


def test_without_a_switch_nothing_is_removed(generations: Generations) -> None:
    generations.forget_others()
    assert queries(generations) == ["query"]


def test_a_damaged_pointer_is_named(generations: Generations, tmp_path: Path) -> None:
    switch(generations, "second")
    (tmp_path / "current.json").write_text("{")
    with pytest.raises(StateFault, match=r"current\.json is damaged"):
        _ = generations.current
