"""Savepoints as the control plane handles them: asked of the running driver, checked, listed, deleted."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from tidemark.compiler.compile import compile_job
from tidemark.control_plane.jobs.lifecycle import TERMINAL, Desired, State
from tidemark.control_plane.jobs.manager import Submission
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.savepoints.deletion import forget, remove_files, retire
from tidemark.control_plane.store import commands, savepoints
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.access import record_change
from tidemark.control_plane.store.records import JobRecord, SavepointRecord
from tidemark.errors import Conflict, TidemarkError
from tidemark.protocol.messages import Failure
from tidemark.savepoints.verify import load_manifest, repeated_output, verify

REPEAT_OUTPUT = "repeat_output"


class Savepoints:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def take(self, job_id: str, actor: str, *, then_cancel: bool = False) -> SavepointRecord:
        """Asks the driver for a savepoint. With `then_cancel` the job is canceled when it is complete, not before."""
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job_id)
            if job.state != State.RUNNING:
                raise Conflict(f"job {job.name!r} is {job.state}", hint="only a running job can write a savepoint")
            if job.final_savepoint is not None:
                raise Conflict(f"job {job.name!r} is writing its final savepoint", hint="wait until it is canceled")
            made = self._insert(connection, job, then_stop=then_cancel)
            if then_cancel:
                store.update_job(connection, job.job_id, final_savepoint=made.savepoint_id)
            record_change(connection, actor, "savepoint", job.job_id, now, made.savepoint_id)
        self._plane.bell.ring(job.job_id)
        return made

    def _insert(self, connection: sa.Connection, job: JobRecord, *, then_stop: bool) -> SavepointRecord:
        now = self._plane.now()
        savepoint_id = f"sp-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"
        location = self._plane.savepoints / job.job_id / savepoint_id
        made = savepoints.insert_savepoint(connection, job, savepoint_id, location.as_uri(), now)
        asked = {"savepoint_id": savepoint_id, "location": made.location, "then_stop": then_stop}
        commands.add_command(connection, job, "savepoint", now, **asked)
        return made

    def of_job(self, job_id: str) -> list[SavepointRecord]:
        with self._plane.database.reading() as connection:
            return savepoints.list_savepoints(connection, store.get_job(connection, job_id).job_id)

    def all(self) -> list[SavepointRecord]:
        with self._plane.database.reading() as connection:
            return savepoints.list_savepoints(connection)

    def get(self, savepoint_id: str) -> SavepointRecord:
        with self._plane.database.reading() as connection:
            return savepoints.get_savepoint(connection, savepoint_id)

    def delete(self, savepoint_id: str, actor: str) -> None:
        with self._plane.database.writing() as connection:
            found = savepoints.get_savepoint(connection, savepoint_id)
            forget(connection, self._plane, found, actor)
        remove_files([found])

    def restored(self, submission: Submission, savepoint_id: str, accept: frozenset[str]) -> Submission:
        """The submission of a job that begins where the savepoint ends. Raises when the savepoint is not whole.

        Raises Conflict when rows would be written twice and nobody accepted that.
        """
        found = self.get(savepoint_id)
        if found.state != savepoints.COMPLETED:
            raise Conflict(f"savepoint {savepoint_id!r} is {found.state}", hint="only a completed one can be restored")
        manifest = verify(found.location)
        plan = compile_job(submission.definition).plan
        repeating = repeated_output(manifest, self._committed_since(found), plan)
        if repeating and REPEAT_OUTPUT not in accept:
            raise Conflict(
                f"what was written since the savepoint would be written again to {', '.join(repeating)}",
                hint=f"say ?accept={REPEAT_OUTPUT} when that is fine",
            )
        return replace(submission, restore_from=found.location)

    def _committed_since(self, savepoint: SavepointRecord) -> dict[str, int | None]:
        """The last epochs of the job it was taken of, once that has ended; nobody knows what one that lives will do."""
        with self._plane.database.reading() as connection:
            job = store.find_job(connection, savepoint.job_id)
        if job is None or job.state not in TERMINAL or job.status is None:
            return {}
        return {query["id"]: query["epoch"] for query in job.status["queries"]}


def confirmed(outcome: dict[str, Any], location: str) -> dict[str, Any]:
    """The driver's word, and that of the manifest it left: without one there is no savepoint."""
    if not outcome["ok"]:
        return outcome
    try:
        return {**outcome, "result": load_manifest(location).summary()}
    except TidemarkError as error:
        failure = Failure.of(error).model_dump(mode="json")
        return {**outcome, "ok": False, "failure": failure, "result": None}


def keep_outcome(
    connection: sa.Connection, plane: Plane, job: JobRecord, body: dict[str, Any], outcome: dict[str, Any]
) -> list[SavepointRecord]:
    """What the driver says became of a savepoint; the job that waited for it is canceled, or goes on.

    Answers with those that give way to it, whose files are to be removed when all this is committed.
    """
    savepoint_id, now = body["savepoint_id"], plane.now()
    if outcome["ok"]:
        savepoints.finish_savepoint(
            connection, savepoint_id, savepoints.COMPLETED, now, summary=outcome["result"] or {}
        )
    else:
        savepoints.finish_savepoint(connection, savepoint_id, savepoints.FAILED, now, failure=outcome["failure"])
    ended = "completed" if outcome["ok"] else f"failed: {outcome['failure']['message']}"
    store.add_event(connection, job, "savepoint", f"{savepoint_id} {ended}", now)
    retired = retire(connection, plane, job) if outcome["ok"] else []
    if job.final_savepoint != savepoint_id:
        return retired
    store.update_job(connection, job.job_id, final_savepoint=None)
    if outcome["ok"] and job.state == State.RUNNING:
        job = store.update_job(connection, job.job_id, desired_state=Desired.CANCELED)
        store.transition(connection, job, State.CANCELING, f"canceled after savepoint {savepoint_id}", now)
    return retired
