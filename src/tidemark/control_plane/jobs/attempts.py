"""The start and the end of one attempt: number, token, folder, process; and nothing of it left behind."""

from __future__ import annotations

import secrets
from datetime import datetime

import sqlalchemy as sa

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.launch.launcher import Launch
from tidemark.control_plane.store import commands, savepoints
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.access import hash_token
from tidemark.control_plane.store.records import AttemptRecord, JobRecord
from tidemark.driver_log import DriverLog
from tidemark.protocol.messages import Failure, RunSpec
from tidemark.protocol.start import ControlEndpoint
from tidemark.redaction import secrets_of
from tidemark.run_directory import JobDirectory, Lineage

_NOT_FOR_DRIVERS = ("TIDEMARK_TOKEN",)


def directory_of(plane: Plane, job: JobRecord) -> JobDirectory:
    """A job of the server has a folder by its id, so that a later job of the same name begins empty."""
    return JobDirectory(plane.settings.home, job.job_id)


def start_attempt(plane: Plane, job: JobRecord) -> None:
    """Takes the next number, then starts the driver: killed in between, the number is simply never used.

    Secrets are looked at first, so that what this driver is about to read will be masked.
    """
    plane.variables.current()
    directory = directory_of(plane, job)
    lineage = directory.lineage(plane.now())
    token = secrets.token_urlsafe(32)
    attempt = _take_number(plane, job, lineage, token)
    if attempt is None:
        return
    spec = _spec(
        plane,
        job,
        directory,
        lineage,
        ControlEndpoint(job_id=job.job_id, address_file=str(plane.address_file), token=token),
        attempt.attempt,
    )
    directory.record_start(job.definition, spec)
    plane.observations.of(job.job_id, attempt.attempt, plane.monotonic())
    process = plane.launcher.start(
        Launch(
            spec=directory.run_spec,
            log=DriverLog(directory.log, plane.variables.file, secrets_of(job.plan)),
            mark=attempt.mark,
            environment={**_environment(plane), **directory.empty_scratch()},
        )
    )
    with plane.database.writing() as connection:
        store.update_attempt(connection, job.job_id, attempt.attempt, process=process)


def end_attempt(plane: Plane, attempt: AttemptRecord, why: Failure) -> None:
    """Fences the attempt, kills what is left of it, and fails what was asked of it and not done."""
    now = plane.now()
    with plane.database.writing() as connection:
        store.update_attempt(connection, attempt.job_id, attempt.attempt, closed_at=now)
        fail_unanswered(connection, attempt, why, now)
    plane.launcher.kill(attempt.process, attempt.mark)
    plane.bell.ring(attempt.job_id)


def fail_unanswered(connection: sa.Connection, attempt: AttemptRecord, why: Failure, now: datetime) -> None:
    failure = why.model_dump(mode="json")
    for command in commands.unanswered(connection, attempt.job_id, attempt.attempt):
        result = {"id": command.command_id, "ok": False, "failure": failure, "result": None}
        commands.keep_result(connection, command, result)
        if command.body["kind"] == "savepoint":
            savepoint_id = command.body["savepoint_id"]
            savepoints.finish_savepoint(connection, savepoint_id, savepoints.FAILED, now, failure=failure)
            store.update_job(connection, attempt.job_id, final_savepoint=None)


def _take_number(plane: Plane, job: JobRecord, lineage: Lineage, token: str) -> AttemptRecord | None:
    mark = f"{lineage.lineage}/{job.attempt + 1}"
    with plane.database.writing() as connection:
        return store.take_attempt(connection, job, token_hash=hash_token(token), mark=mark, now=plane.now())


def _spec(
    plane: Plane, job: JobRecord, directory: JobDirectory, lineage: Lineage, control: ControlEndpoint, attempt: int
) -> RunSpec:
    return RunSpec.model_validate(
        {
            "plan": ExecutionPlan.model_validate(job.plan),
            "lineage": lineage.lineage,
            "attempt": attempt,
            "first_started_at": lineage.first_started_at,
            "state": str(directory.state),
            "base": str(plane.base),
            "master": plane.settings.master,
            "driver_memory": plane.settings.driver_memory,
            "definition": job.definition,
            "secrets": str(plane.variables.file),
            "control": control,
            "prepare": (job.prepare or {}).get("spec"),
        }
    )


def _environment(plane: Plane) -> dict[str, str]:
    inherited = {name: value for name, value in plane.variables.environment.items() if name not in _NOT_FOR_DRIVERS}
    return {**inherited, "TIDEMARK_LOG_LEVEL": plane.settings.log_level}
