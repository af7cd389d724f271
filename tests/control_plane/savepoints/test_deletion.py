"""Savepoints that give way to newer ones, and a server that is killed in the middle of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from control_plane.savepoints.test_savepoints_over_rest import folder, submit, taken
from control_plane.serving import job_text, running_server
from support.waiting import wait_until

from tidemark.control_plane.jobs.lifecycle import Desired, State
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.jobs.variables import Variables
from tidemark.control_plane.launch.local import LocalLauncher
from tidemark.control_plane.savepoints.deletion import finish_deletions, forget, remove_files, retire
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store import savepoints
from tidemark.control_plane.store.access import list_changes
from tidemark.control_plane.store.database import Database
from tidemark.control_plane.store.records import JobRecord
from tidemark.errors import Conflict
from tidemark.settings import load_settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Kept:
    """A store with a job and its savepoints, each of one file."""

    plane: Plane
    job: JobRecord

    def add(self, number: int, state: str = savepoints.COMPLETED) -> str:
        id_, at = f"sp-{number}", NOW + timedelta(minutes=number)
        place = self.plane.savepoints / self.job.job_id / id_
        place.mkdir(parents=True)
        (place / "manifest.json").write_text("{}")
        with self.plane.database.writing() as connection:
            savepoints.insert_savepoint(connection, self.job, id_, place.as_uri(), at)
            if state != savepoints.IN_PROGRESS:
                savepoints.finish_savepoint(connection, id_, state, at)
        return id_

    def retire(self) -> list[str]:
        """Up to the point at which a killed server would leave it: forgotten, but with all files."""
        with self.plane.database.writing() as connection:
            return [each.savepoint_id for each in retire(connection, self.plane, self.job)]

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.plane.savepoints / self.job.job_id).iterdir())

    def listed(self) -> list[str]:
        with self.plane.database.reading() as connection:
            return sorted(each.savepoint_id for each in savepoints.list_savepoints(connection))


def job_of(database: Database, job_id: str, prepare: dict[str, Any] | None = None) -> JobRecord:
    with database.writing() as connection:
        return store.insert_job(
            connection,
            job_id=job_id,
            name="shop",
            state=State.CREATED,
            desired_state=Desired.RUNNING,
            since=NOW,
            created_at=NOW,
            definition="",
            plan={},
            prepare=prepare,
        )


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    settings = load_settings(tmp_path).model_copy(update={"home": tmp_path, "savepoints_kept": 2})
    database = Database(tmp_path / "control.db")
    variables = Variables({}, tmp_path)
    plane = Plane(database, LocalLauncher(), settings, tmp_path, tmp_path / "server.json", variables, now=lambda: NOW)
    return Kept(plane, job_of(database, "shop-1"))


def test_the_oldest_complete_ones_go_and_the_history_says_why(kept: Kept) -> None:
    for number in range(1, 5):
        kept.add(number)
    kept.add(0, savepoints.FAILED)
    kept.add(5, savepoints.IN_PROGRESS)
    assert kept.retire() == ["sp-2", "sp-1"]
    assert kept.listed() == ["sp-0", "sp-3", "sp-4", "sp-5"]
    with kept.plane.database.reading() as connection:
        entry = list_changes(connection, 1)[0]
        assert (entry.actor, entry.action, entry.target) == ("server", "delete savepoint", "sp-1")
        assert entry.detail == "savepoints_kept is 2"
        assert store.list_events(connection, "shop-1", 1)[0].cause == "sp-1 deleted: savepoints_kept is 2"


def test_all_are_kept_unless_a_number_is_set(kept: Kept) -> None:
    kept.plane.settings = kept.plane.settings.model_copy(update={"savepoints_kept": None})
    for number in range(4):
        kept.add(number)
    assert kept.retire() == []


def test_one_that_a_job_is_being_restored_from_stays(kept: Kept) -> None:
    for number in range(1, 4):
        kept.add(number)
    location = (kept.plane.savepoints / "shop-1" / "sp-1").as_uri()
    prepare = {"what": "restore", "spec": {"kind": "restore", "location": location}, "fallback": None}
    job_of(kept.plane.database, "copy-1", prepare)
    assert kept.retire() == []
    with kept.plane.database.writing() as connection:
        with pytest.raises(Conflict, match="is being restored from savepoint 'sp-1'"):
            forget(connection, kept.plane, savepoints.get_savepoint(connection, "sp-1"), "me")
        store.update_job(connection, "copy-1", prepare=None)
    assert kept.retire() == ["sp-1"]


def test_a_server_killed_before_the_files_were_gone_is_finished_by_the_next(kept: Kept) -> None:
    for number in range(1, 4):
        kept.add(number)
    kept.retire()
    assert (kept.listed(), kept.files()) == (["sp-2", "sp-3"], ["sp-1", "sp-2", "sp-3"])
    half = kept.plane.savepoints / "shop-1" / ".sp-0.abc.deleted"
    half.mkdir()
    finish_deletions(kept.plane)
    assert kept.files() == ["sp-2", "sp-3"]


def test_a_folder_that_nobody_deleted_is_left_alone(kept: Kept) -> None:
    """Such as all of them when the store was lost or is another one."""
    id_ = kept.add(1)
    with kept.plane.database.writing() as connection:
        savepoints.delete_savepoint(connection, id_)
    finish_deletions(kept.plane)
    assert kept.files() == [id_]


def test_files_that_cannot_be_removed_are_left_to_the_next_start(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.add(1)
    with kept.plane.database.writing() as connection:
        found = savepoints.get_savepoint(connection, "sp-1")
        forget(connection, kept.plane, found, "me")
    with monkeypatch.context() as broken:
        broken.setattr(Path, "rename", _fails)
        remove_files([found])
    assert kept.files() == ["sp-1"]
    finish_deletions(kept.plane)
    assert kept.files() == []


def _fails(*_: object) -> None:
    raise PermissionError("not yours")


def test_a_server_keeps_as_many_as_it_is_told(home: Path) -> None:
    with running_server(home, TIDEMARK_SAVEPOINTS_KEPT="2") as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        made = [taken(server, job_id) for _ in range(3)]
        wait_until(lambda: len(server.get("/savepoints")["savepoints"]) == 2, 10)
        listed = server.get("/savepoints")["savepoints"]
        assert {each["savepoint_id"] for each in listed} == {each["savepoint_id"] for each in made[1:]}
        wait_until(lambda: not folder(made[0]).exists(), 10)
        assert f"{made[0]['savepoint_id']} deleted: savepoints_kept is 2" in server.causes(job_id, "savepoint")
        assert submit(server, job_text("copy"), from_savepoint=made[0]["savepoint_id"]).status_code == 404
        leftover = folder(made[0]).with_name(".sp-old.abc.deleted")
        server.end(signal.SIGKILL)
        leftover.mkdir()
        server.start()
        assert not leftover.exists()
        assert folder(made[2]).is_dir()
