"""How a savepoint goes, by request or because newer ones have taken its place: first its row, then its files.

The row goes in one transaction with an entry in the audit log, so one that is half deleted is never listed. The entry
also tells the next server which files a killed one was about to remove; a folder that nobody deleted is never touched.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import sqlalchemy as sa

from tidemark.control_plane.jobs.lifecycle import TERMINAL
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store import savepoints
from tidemark.control_plane.store.access import record_change, was_recorded
from tidemark.control_plane.store.records import JobRecord, SavepointRecord
from tidemark.errors import Conflict
from tidemark.savepoints.storage import remains_of_deletions, storage_at

_LOG = logging.getLogger(__name__)
DELETED = "delete savepoint"
BY_THE_SERVER = "server"


def forget(connection: sa.Connection, plane: Plane, found: SavepointRecord, actor: str, why: str | None = None) -> None:
    """Raises Conflict for one that is being written, or that a job is being restored from."""
    if found.state == savepoints.IN_PROGRESS:
        raise Conflict(f"savepoint {found.savepoint_id!r} is still being written", hint="wait until it is done")
    job = _restored_from(connection, found)
    if job is not None:
        raise Conflict(
            f"job {job.name!r} is being restored from savepoint {found.savepoint_id!r}", hint="wait until it runs"
        )
    savepoints.delete_savepoint(connection, found.savepoint_id)
    record_change(connection, actor, DELETED, found.savepoint_id, plane.now(), why)


def retire(connection: sa.Connection, plane: Plane, job: JobRecord) -> list[SavepointRecord]:
    """Forgets the oldest complete savepoints of a job beyond the number to keep; their files are still to be removed.

    One that a job is being restored from stays, and goes when the next one is complete.
    """
    kept = plane.settings.savepoints_kept
    if kept is None:
        return []
    newest_first = savepoints.list_savepoints(connection, job.job_id)
    complete = [each for each in newest_first if each.state == savepoints.COMPLETED]
    gone = [each for each in complete[kept:] if _restored_from(connection, each) is None]
    why = f"savepoints_kept is {kept}"
    for each in gone:
        forget(connection, plane, each, BY_THE_SERVER, why)
        store.add_event(connection, job, "savepoint", f"{each.savepoint_id} deleted: {why}", plane.now())
    return gone


def remove_files(gone: list[SavepointRecord]) -> None:
    """Files that cannot be removed now are left to the next start of the server: nobody lists them any more."""
    for each in gone:
        try:
            storage_at(each.location).delete()
        except OSError:
            _LOG.exception("the files of savepoint %s", each.savepoint_id)


def finish_deletions(plane: Plane) -> None:
    """Removes what an earlier server forgot in the store and did not get to remove."""
    for place in plane.savepoints.glob("*/"):
        for leftover in (*remains_of_deletions(place), *_deleted(plane, place)):
            try:
                shutil.rmtree(leftover)
            except OSError:
                _LOG.exception("what is left of a savepoint in %s", leftover)


def _deleted(plane: Plane, place: Path) -> list[Path]:
    with plane.database.reading() as connection:
        return [folder for folder in place.glob("sp-*/") if was_recorded(connection, DELETED, folder.name)]


def _restored_from(connection: sa.Connection, savepoint: SavepointRecord) -> JobRecord | None:
    for job in store.list_jobs(connection):
        spec = (job.prepare or {}).get("spec") or {}
        if job.state not in TERMINAL and spec.get("location") == savepoint.location:
            return job
    return None
