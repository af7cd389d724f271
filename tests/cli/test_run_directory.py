"""The folder of a job: lineage, attempts, lock and kept shapes, also when files are damaged or writers killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli.driving import plan

from tidemark.errors import AlreadyRunning, NotFresh, StateFault, UsageError
from tidemark.protocol.messages import RunSpec
from tidemark.run_directory import JobDirectory

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 2, 1, tzinfo=UTC)
TAKE = """
import sys
from pathlib import Path
from tidemark.run_directory import JobDirectory
directory = JobDirectory(Path(sys.argv[1]), "shop")
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    print(directory.take_attempt(), flush=True)
"""


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    return JobDirectory(tmp_path, "shop")


def record(directory: JobDirectory, attempt: int = 1, **signatures: str) -> None:
    lineage = directory.lineage(NOW)
    spec = RunSpec(
        plan=plan(**signatures),
        lineage=lineage.lineage,
        attempt=attempt,
        first_started_at=lineage.first_started_at,
        state=str(directory.state),
        base="/",
    )
    directory.record_start("text", spec)


def put_state(directory: JobDirectory, query: str = "per_min") -> Path:
    folder = directory.state / query
    folder.mkdir()
    (folder / "offsets").write_text("1")
    return folder


def test_lineage_is_minted_once_and_kept(directory: JobDirectory, tmp_path: Path) -> None:
    first = directory.lineage(NOW)
    assert JobDirectory(tmp_path, "shop").lineage(LATER) == first
    assert JobDirectory(tmp_path, "other").lineage(NOW).lineage != first.lineage


def test_a_fresh_start_mints_a_new_lineage_and_removes_the_state(directory: JobDirectory) -> None:
    record(directory)
    put_state(directory)
    before = directory.lineage(NOW)
    fresh = directory.start_afresh(LATER)
    assert fresh.lineage != before.lineage
    assert directory.lineage(LATER) == fresh
    assert list(directory.state.iterdir()) == []
    assert not list(directory.root.glob("discarded*"))
    assert directory.last_start() is None


def test_a_fresh_start_that_was_killed_is_finished_by_the_next_start(directory: JobDirectory, tmp_path: Path) -> None:
    record(directory)
    put_state(directory)
    lineage_file = directory.root / "lineage.json"
    fresh = directory.start_afresh(LATER)
    put_state(directory)
    lineage_file.write_text(fresh.model_copy(update={"discards_state": True}).model_dump_json())
    (directory.root / "discarded-half").mkdir()

    reopened = JobDirectory(tmp_path, "shop")
    assert reopened.lineage(LATER) == fresh
    assert list(reopened.state.iterdir()) == []
    assert not list(reopened.root.glob("discarded*"))


@pytest.mark.parametrize("damage", [b"", b'{"lineage": "ab', b"\xff\xfe", b"[]"])
def test_a_damaged_lineage_is_taken_from_the_last_start(directory: JobDirectory, damage: bytes) -> None:
    before = directory.lineage(NOW)
    record(directory)
    put_state(directory)
    (directory.root / "lineage.json").write_bytes(damage)
    assert directory.lineage(LATER) == before
    (directory.root / "lineage.json").unlink()
    assert directory.lineage(LATER) == before


def test_state_without_any_lineage_is_refused_until_fresh(directory: JobDirectory) -> None:
    put_state(directory)
    (directory.root / "lineage.json").write_text("{")
    with pytest.raises(StateFault) as refused:
        directory.lineage(NOW)
    assert refused.value.hint
    assert "--fresh" in refused.value.hint
    directory.start_afresh(NOW)
    assert directory.take_attempt() == 1


def test_attempts_rise_under_concurrency(tmp_path: Path) -> None:
    directory = JobDirectory(tmp_path, "shop")
    with ThreadPoolExecutor(8) as pool:
        here = list(pool.map(lambda _: directory.take_attempt(), range(40)))
    takers = [
        subprocess.Popen([sys.executable, "-c", TAKE, str(tmp_path), "20"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    elsewhere = [[int(line) for line in taker.communicate()[0].split()[1:]] for taker in takers]
    assert all(taken == sorted(taken) for taken in elsewhere)
    assert sorted(here + [number for taken in elsewhere for number in taken]) == list(range(1, 101))


def test_attempts_rise_when_a_taker_is_killed(tmp_path: Path) -> None:
    handed_out: list[int] = []
    for round_ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", TAKE, str(tmp_path), "100000"], stdout=subprocess.PIPE, text=True
        ) as taker:
            assert taker.stdout
            for line, _ in zip(taker.stdout, range(5 + round_), strict=False):
                handed_out += [int(line)] if line.strip().isdigit() else []
            os.kill(taker.pid, signal.SIGKILL)
            handed_out += [int(line) for line in taker.stdout.read().split("\n")[:-1]]
        handed_out.append(JobDirectory(tmp_path, "shop").take_attempt())
    assert len(handed_out) == len(set(handed_out))
    assert handed_out == sorted(handed_out)


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: log[:-3],
        lambda log: log[:-1],
        lambda log: log[: log.rindex(b"3 ")] + b"9 deadbeef\n",
        lambda log: b"\0" * len(log) + b"\n",
        lambda log: b"",
    ],
    ids=["torn", "no newline", "last line damaged", "zeros", "emptied"],
)
def test_no_attempt_is_given_twice_after_damage(directory: JobDirectory, damage: object) -> None:
    assert [directory.take_attempt() for _ in range(3)] == [1, 2, 3]
    record(directory, attempt=3)
    put_state(directory)
    assert callable(damage)
    log = directory.root / "attempt"
    log.write_bytes(damage(log.read_bytes()))
    taken = [directory.take_attempt() for _ in range(3)]
    assert taken[0] > 3
    assert taken == sorted(set(taken))


def test_the_last_damaged_line_counts_without_the_last_start(directory: JobDirectory) -> None:
    assert [directory.take_attempt() for _ in range(3)] == [1, 2, 3]
    log = directory.root / "attempt"
    log.write_bytes(log.read_bytes()[:-4])
    assert directory.take_attempt() == 4
    assert directory.take_attempt() == 5


def test_lost_attempts_beside_state_are_refused(directory: JobDirectory) -> None:
    put_state(directory)
    with pytest.raises(StateFault, match="attempt"):
        directory.take_attempt()


def test_attempts_go_on_over_a_fresh_start(directory: JobDirectory) -> None:
    assert directory.take_attempt() == 1
    directory.start_afresh(NOW)
    assert directory.take_attempt() == 2


def test_one_process_holds_the_job(directory: JobDirectory, tmp_path: Path) -> None:
    other = JobDirectory(tmp_path, "shop")
    with directory.locked():
        with pytest.raises(AlreadyRunning, match=str(os.getpid())), other.locked():
            pass
        with JobDirectory(tmp_path, "another").locked():
            pass
    with other.locked():
        pass


def test_a_changed_shape_of_state_is_refused_by_name(directory: JobDirectory) -> None:
    record(directory, per_min="a", sessions="s")
    put_state(directory)
    directory.check_state_fits(plan(per_min="a", sessions="changed, but it has no state"))
    with pytest.raises(NotFresh, match=r"per_min.*valid, per_min") as refused:
        directory.check_state_fits(plan(per_min="b", sessions="s"))
    assert "--fresh" in str(refused.value.hint)


def test_a_query_that_was_away_is_still_known(directory: JobDirectory) -> None:
    record(directory, per_min="a")
    put_state(directory)
    record(directory, attempt=2, other="o")
    with pytest.raises(NotFresh):
        directory.check_state_fits(plan(per_min="b"))


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"per_min": 3}'])
def test_damaged_shapes_are_taken_from_the_last_start(directory: JobDirectory, damage: str) -> None:
    record(directory, per_min="a")
    put_state(directory)
    (directory.root / "signatures.json").write_text(damage)
    directory.check_state_fits(plan(per_min="a"))
    with pytest.raises(NotFresh):
        directory.check_state_fits(plan(per_min="b"))


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(UsageError, match="home") as refused:
        JobDirectory(tmp_path / "home", "shop")
    assert "TIDEMARK_HOME" in str(refused.value.hint)


def test_temporary_files_go_where_the_next_start_clears_them(directory: JobDirectory) -> None:
    variables = directory.empty_scratch()
    assert set(variables.values()) == {str(directory.scratch)}
    (directory.scratch / "artifacts").mkdir()
    assert directory.empty_scratch() == variables
    assert list(directory.scratch.iterdir()) == []
