"""Savepoints on disk: appear whole or not at all, answer a second request, and show every kind of damage."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from data_plane.checkpoint_files import commit_epoch
from data_plane.driving_jobs import QUERY, plan_of
from support.repository import ROOT

from tidemark.data_plane.state.savepoint import take_savepoint
from tidemark.errors import SavepointDamaged, UsageError
from tidemark.protocol.messages import RunSpec
from tidemark.savepoints.verify import verify

EPOCHS = 4


def job_in(folder: Path) -> RunSpec:
    """A job that stands still, as far as a savepoint can tell."""
    for epoch in range(EPOCHS):
        commit_epoch(folder / "state" / QUERY, epoch)
    return spec_of(folder)


def spec_of(folder: Path) -> RunSpec:
    return RunSpec(
        plan=plan_of(folder / "in"),
        lineage="lineage",
        attempt=3,
        first_started_at=datetime(2026, 1, 1, tzinfo=UTC),
        state=str(folder / "state"),
        base=str(folder),
    )


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    take_savepoint(job_in(folder), "s1", str(folder / "savepoints" / "s1"))
    return folder / "savepoints" / "s1"


def test_a_savepoint_says_where_the_job_stood(savepoint: Path) -> None:
    manifest = verify(f"file://{savepoint}")
    assert manifest.queries[QUERY].epoch == EPOCHS - 1
    assert manifest.queries[QUERY].offsets == {"orders": {"logOffset": EPOCHS - 1}}
    assert manifest.watermark == datetime(1970, 1, 1, 0, 0, EPOCHS - 1, tzinfo=UTC)
    assert manifest.summary()["bytes"] == sum(
        path.stat().st_size for path in savepoint.rglob("*") if path.is_file() and path.name != "manifest.json"
    )


def test_asked_for_again_it_answers_with_the_one_that_is_there(tmp_path: Path) -> None:
    spec, location = job_in(tmp_path), str(tmp_path / "s")
    first = take_savepoint(spec, "s1", location)
    commit_epoch(tmp_path / "state" / QUERY, EPOCHS)
    assert take_savepoint(spec, "s1", location) == first
    with pytest.raises(UsageError, match="holds another savepoint"):
        take_savepoint(spec, "s2", location)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


KINDS = (
    "manifest.json",
    "queries/*/offsets/3",
    "queries/*/commits/3",
    "queries/*/tidemark/3",
    "queries/*/tidemark/offsets-3",
    "queries/*/sources/orders/0",
    "queries/*/state/0/0/4_*.changelog",
    "queries/*/state/0/1/4_*.zip",
    "queries/*/state/0/1/SSTs/*.sst",
    "queries/*/state/0/_metadata/metadata",
)


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["flip", "cut", "remove"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_any_kind_of_file_is_found(
    savepoint: Path, tmp_path: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    copy = tmp_path / "s"
    shutil.copytree(savepoint, copy)
    damage(next(copy.glob(kind)))
    with pytest.raises(SavepointDamaged):
        verify(str(copy))


def test_a_file_too_many_is_found(savepoint: Path, tmp_path: Path) -> None:
    shutil.copytree(savepoint, tmp_path / "s")
    (tmp_path / "s" / "queries" / QUERY / "commits" / "4").write_text("v2\n{}")
    with pytest.raises(SavepointDamaged, match="commits/4 does not belong"):
        verify(str(tmp_path / "s"))


KILLED = """
import os, signal, sys
from pathlib import Path
from data_plane.test_savepoint_files import spec_of
from tidemark.data_plane.state import savepoint
from tidemark.savepoints import storage

calls = 0
def strike(*_):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

def striking(call):
    def wrapped(*arguments):
        strike()
        return call(*arguments)
    return wrapped

storage._LocalDraft.write = striking(storage._LocalDraft.write)
storage.sync_tree = striking(storage.sync_tree)
Path.rename = striking(Path.rename)
folder = Path(sys.argv[1])
savepoint.take_savepoint(spec_of(folder), "s1", str(folder / "savepoints" / "s1"))
"""


@pytest.mark.faults
@pytest.mark.parametrize("strike", ["first file", "in the middle", "manifest", "sync", "rename"])
def test_a_kill_while_it_is_written_leaves_nothing_that_looks_like_one(tmp_path: Path, strike: str) -> None:
    spec = job_in(tmp_path)
    files = len(take_savepoint(spec, "other", str(tmp_path / "other")).files)
    at = {"first file": 1, "in the middle": files // 2, "manifest": files + 1, "sync": files + 2, "rename": files + 3}
    ended = _run_killed(tmp_path, at[strike])
    assert ended == -signal.SIGKILL
    location = tmp_path / "savepoints" / "s1"
    assert not location.exists()
    with pytest.raises(UsageError, match="no savepoint"):
        verify(str(location))
    assert take_savepoint(spec, "s1", str(location)).savepoint_id == "s1"
    verify(str(location))
    assert os.listdir(location.parent) == ["s1"]


def _run_killed(folder: Path, at: int) -> int:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    command = [sys.executable, "-c", KILLED, str(folder), str(at)]
    return subprocess.run(command, env=environment, check=False).returncode
