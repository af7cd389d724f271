"""What a user can ask for: submit, stop, restart, cancel, rescale, upgrade, purge.

Each verb is one transaction that checks, changes what is wanted and writes the audit log; the reconcile loop does the
rest. A verb that cannot be carried out raises and leaves everything as it was.
"""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tidemark.compiler.compile import Compiled, compile_job
from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.control_plane.jobs import changes, upgrade
from tidemark.control_plane.jobs.attempts import directory_of
from tidemark.control_plane.jobs.confinement import refused_paths
from tidemark.control_plane.jobs.lifecycle import TERMINAL, TRANSITIONS, Desired, State
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.jobs.replay import replay_of
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store import savepoints
from tidemark.control_plane.store.access import job_made_by, keep_key, record_change
from tidemark.control_plane.store.records import JobRecord
from tidemark.errors import Conflict, DefinitionError, LimitReached, NotAvailable, RequestRefused, StateWouldBeLost
from tidemark.protocol.start import Restore


@dataclass(frozen=True)
class Submission:
    """`key` and `request_hash` let the same request come twice and make one job.

    `restore_from` is the place of a savepoint that was checked.
    """

    definition: str
    start: bool = True
    key: str | None = None
    request_hash: str = ""
    restore_from: str | None = None


class Manager:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def compile(self, definition: str) -> Compiled:
        """Raises DefinitionError with all that is wrong, paths that this server does not allow included."""
        compiled = compile_job(definition)
        plane = self._plane
        refused = refused_paths(compiled.plan, plane.base, self.roots, plane.variables.current())
        if refused:
            raise DefinitionError(refused)
        return compiled

    @property
    def roots(self) -> list[Path]:
        return [self._plane.base / root for root in self._plane.settings.allowed_roots] or [self._plane.base]

    def submit(self, submission: Submission, actor: str) -> tuple[JobRecord, tuple[Diagnostic, ...]]:
        """The job, new or made by the same request before, and the compiler's warnings."""
        compiled = self.compile(submission.definition)
        with self._plane.database.writing() as connection:
            made = self._made_before(connection, submission)
            job = made or self._create(connection, submission, compiled.plan, actor)
        self._plane.wake.set()
        return job, compiled.warnings

    def _made_before(self, connection: sa.Connection, submission: Submission) -> JobRecord | None:
        if submission.key is None:
            return None
        job_id = job_made_by(connection, submission.key, submission.request_hash, self._plane.now())
        return None if job_id is None else store.get_job(connection, job_id)

    def _create(self, connection: sa.Connection, submission: Submission, plan: ExecutionPlan, actor: str) -> JobRecord:
        self._check_name(connection, plan.job)
        self._check_limit(connection)
        _check_kept(connection, submission)
        now = self._plane.now()
        job = store.insert_job(
            connection,
            job_id=f"{plan.job}-{secrets.token_hex(4)}",
            name=plan.job,
            state=State.CREATED,
            desired_state=Desired.RUNNING if submission.start else Desired.STOPPED,
            since=now,
            created_at=now,
            definition=submission.definition,
            plan=plan.model_dump(mode="json"),
            prepare=_preparation(submission, plan),
        )
        store.add_event(connection, job, "created", "submitted", now, to_state=State.CREATED)
        if submission.key is not None:
            keep_key(connection, submission.key, submission.request_hash, job.job_id, now)
        record_change(connection, actor, "submit", job.job_id, now)
        return store.transition(connection, job, State.STARTING, "submitted", now) if submission.start else job

    def _check_name(self, connection: sa.Connection, name: str) -> None:
        live = store.live_job_named(connection, name)
        if live is not None:
            raise Conflict(
                f"job {name!r} is {live.state}", hint="cancel it first, change it with PUT, or use another name"
            )

    def _check_limit(self, connection: sa.Connection) -> None:
        limit = self._plane.settings.max_jobs
        if store.count_live(connection) >= limit:
            raise LimitReached(
                f"this server has {limit} jobs, its limit", hint="cancel one, or raise the setting max_jobs"
            )

    def stop(self, job_id: str, actor: str) -> JobRecord:
        """Stops at the end of the epoch; the state is kept. Harmless when it is stopping or has stopped."""
        return self._want(job_id, Desired.STOPPED, State.STOPPING, "stop", actor)

    def cancel(self, job_id: str, actor: str) -> JobRecord:
        return self._want(job_id, Desired.CANCELED, State.CANCELING, "cancel", actor)

    def _want(self, job_id: str, desired: Desired, on_the_way: State, action: str, actor: str) -> JobRecord:
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job_id)
            there = (on_the_way, State(desired))
            if job.state not in there and on_the_way not in TRANSITIONS[job.state]:
                raise Conflict(
                    f"job {job.name!r} is {job.state}", hint=f"a job in this state cannot be told to {action}"
                )
            job = store.update_job(connection, job.job_id, desired_state=desired, change=None)
            if job.state not in there:
                job = store.transition(connection, job, on_the_way, f"{action} by {actor}", now)
            record_change(connection, actor, action, job.job_id, now)
        self._plane.wake.set()
        return job

    def restart(self, job_id: str, actor: str) -> JobRecord:
        """Starts a job that rests; one that runs is stopped at the end of its epoch and started again."""
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job_id)
            if job.state == State.FAILED:
                self._check_name(connection, job.name)
            if State.STARTING in TRANSITIONS[job.state]:
                job = store.update_job(
                    connection, job.job_id, desired_state=Desired.RUNNING, failures=[], restart_at=None
                )
                job = store.transition(connection, job, State.STARTING, f"restart by {actor}", now)
            else:
                job = self._stop_for(connection, job, changes.unchanged(job), f"restart by {actor}")
            record_change(connection, actor, "restart", job.job_id, now)
        self._plane.wake.set()
        return job

    def rescale(self, job_id: str, parallelism: int, actor: str) -> JobRecord:
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job_id)
            job = self._change(connection, job, changes.rescaling(job, parallelism), f"rescale by {actor}")
            record_change(connection, actor, "rescale", job.job_id, now, f"parallelism {parallelism}")
        self._plane.wake.set()
        return job

    def verdict(self, name: str, definition: str) -> tuple[JobRecord, Compiled, tuple[upgrade.QueryVerdict, ...]]:
        """What an upgrade to this definition would mean; nothing is changed."""
        compiled = self.compile(definition)
        with self._plane.database.reading() as connection:
            job = store.get_job(connection, name)
        if compiled.plan.job != job.name:
            raise RequestRefused(
                f"the definition is of job {compiled.plan.job!r}, not of {job.name!r}",
                hint="an upgrade keeps the name; a new job comes with POST /jobs",
            )
        replay = partial(replay_of, directory_of(self._plane, job).state)
        return job, compiled, upgrade.compare(ExecutionPlan.model_validate(job.plan), compiled.plan, replay)

    def upgrade(
        self, name: str, definition: str, accept: frozenset[str], actor: str
    ) -> tuple[JobRecord, tuple[upgrade.QueryVerdict, ...]]:
        """Stops the job at the end of its epoch and starts it with the new definition."""
        job, compiled, verdicts = self.verdict(name, definition)
        _check_accepted(verdicts, accept, compiled.plan)
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job.job_id)
            plan = compiled.plan.model_dump(mode="json")
            change = changes.upgrading(job, definition, plan, upgrade.rebuilt(verdicts))
            job = self._change(connection, job, change, f"upgrade by {actor}")
            record_change(connection, actor, "upgrade", job.job_id, now)
        self._plane.wake.set()
        return job, verdicts

    def _change(self, connection: sa.Connection, job: JobRecord, change: dict[str, Any], cause: str) -> JobRecord:
        """At once for a job that rests; else after a stop at the end of the epoch."""
        if job.state in (State.CREATED, State.STOPPED, State.FAILED):
            return changes.change_at_rest(connection, job, change)
        return self._stop_for(connection, job, change, cause)

    def _stop_for(self, connection: sa.Connection, job: JobRecord, change: dict[str, Any], cause: str) -> JobRecord:
        if job.state not in (State.STARTING, State.RUNNING, State.RECOVERING) or job.change is not None:
            raise Conflict(f"job {job.name!r} is {job.state}", hint="wait until it runs or has stopped")
        job = store.update_job(connection, job.job_id, change=change)
        return store.transition(connection, job, State.STOPPING, cause, self._plane.now())

    def purge(self, job_id: str, actor: str) -> None:
        """Forgets a job that has ended: its history, its log and its state. Savepoints stay."""
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job_id)
            if job.state not in TERMINAL:
                raise Conflict(f"job {job.name!r} is {job.state}", hint="cancel it first")
            store.delete_job(connection, job.job_id)
            record_change(connection, actor, "purge", job.job_id, self._plane.now())
        self._plane.observations.forget(job.job_id)
        self._plane.metrics.forget(job.name)
        shutil.rmtree(directory_of(self._plane, job).root, ignore_errors=True)


def _preparation(submission: Submission, plan: ExecutionPlan) -> dict[str, Any] | None:
    if submission.restore_from is None:
        return None
    spec = Restore(location=submission.restore_from, parallelism=plan.parallelism)
    return {"what": "restore", "spec": spec.model_dump(mode="json"), "fallback": None}


def _check_kept(connection: sa.Connection, submission: Submission) -> None:
    """The savepoint may have been deleted while it was being checked; from here on the job holds it."""
    place = submission.restore_from
    if place is not None and not savepoints.is_kept_at(connection, place):
        raise Conflict("the savepoint has just been deleted", hint="restore another one")


def _check_accepted(verdicts: tuple[upgrade.QueryVerdict, ...], accept: frozenset[str], plan: ExecutionPlan) -> None:
    impossible = upgrade.impossible(verdicts, plan)
    if impossible:
        raise NotAvailable(
            "; ".join(f"query {query.id}: {query.reason}" for query in impossible),
            hint="submit it as a new job, or keep the sources and stateful operators of this one",
        )
    missing = [id_ for id_ in upgrade.lost(verdicts) if id_ not in accept]
    if missing:
        raise StateWouldBeLost(
            f"the state of {', '.join(missing)} would be lost",
            hint=f"accept it with ?accept={'&accept='.join(missing)}",
        )
