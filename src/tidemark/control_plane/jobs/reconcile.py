"""The one loop that brings what is seen in line with what is wanted: looks at every job, decides, carries it out."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from tidemark.control_plane.jobs import decide as rules
from tidemark.control_plane.jobs.attempts import end_attempt, start_attempt
from tidemark.control_plane.jobs.changes import fall_back, take_up_change
from tidemark.control_plane.jobs.crash_row import crash_of
from tidemark.control_plane.jobs.decide import AskStop, Failing, Launch, Rest, Running, Situation, Wait, decide
from tidemark.control_plane.jobs.lifecycle import TRANSITIONS, WITH_DRIVER, Desired, State
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.store import commands
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.records import AttemptRecord, JobRecord
from tidemark.errors import TidemarkError
from tidemark.protocol.messages import Failure
from tidemark.protocol.status import DriverStatus

_LOG = logging.getLogger(__name__)
_PASSING = (TidemarkError, OSError, SQLAlchemyError)


class Reconciler:
    """Runs in a thread of its own; what others change is taken up when they set `plane.wake`, or at the next tick."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconcile", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the loop and leaves the drivers alone."""
        self._stopping.set()
        self._plane.wake.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._plane.wake.wait(self._plane.timing.tick)
            self._plane.wake.clear()
            try:
                self.look_around()
            except _PASSING:
                _LOG.exception("the next look around tries again")

    def look_around(self) -> None:
        """One look at every job that has, or should have, a driver. A job that cannot be handled stops no other."""
        with self._plane.database.reading() as connection:
            jobs = store.list_jobs(connection, WITH_DRIVER)
        for job in jobs:
            try:
                self.handle(job)
            except (TidemarkError, OSError) as error:
                _LOG.exception("job %s", job.job_id)
                self._cannot(job, _failure_of(error))

    def handle(self, job: JobRecord) -> None:
        situation = self._look(job)
        match decide(situation):
            case Launch():
                start_attempt(self._plane, job)
            case AskStop():
                self._ask_stop(job)
            case Running():
                self._running(job)
            case Rest(cause=cause, finished=finished):
                self._rest(job, situation.attempt, cause, finished)
            case Failing(failure=failure):
                self._fail(job, situation.attempt, failure)
            case Wait():
                pass

    def _look(self, job: JobRecord) -> Situation:
        plane, moment = self._plane, self._plane.monotonic()
        with plane.database.reading() as connection:
            attempt = store.get_attempt(connection, job.job_id, job.attempt)
        if attempt is None or attempt.closed_at is not None:
            return Situation(job, None, plane.now(), plane.timing, plane.uptime)
        seen = plane.observations.of(job.job_id, attempt.attempt, moment)
        running = attempt.process is not None and plane.launcher.is_running(attempt.process)
        gone = attempt.process is not None and not running
        return Situation(
            job,
            attempt,
            plane.now(),
            plane.timing,
            plane.uptime,
            running=running,
            silent=None if seen.heard_at is None else moment - seen.heard_at,
            watched=moment - seen.seen_since,
            since_last_word=None if seen.ended_at is None else moment - seen.ended_at,
            how_it_ended=plane.launcher.describe_end(attempt.process) if gone and attempt.process else "",
        )

    def _ask_stop(self, job: JobRecord) -> None:
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            commands.add_command(connection, job, "stop", now)
            store.update_attempt(connection, job.job_id, job.attempt, stop_asked_at=now)
        self._plane.bell.ring(job.job_id)

    def _running(self, job: JobRecord) -> None:
        with self._plane.database.writing() as connection:
            store.transition(connection, job, State.RUNNING, "the driver runs", self._plane.now())
            store.update_job(connection, job.job_id, prepare=None)

    def _rest(self, job: JobRecord, attempt: AttemptRecord | None, cause: str, finished: bool) -> None:
        if attempt is not None:
            end_attempt(self._plane, attempt, rules.crash(f"the job came to rest: {cause}"))
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job.job_id)
            store.update_job(connection, job.job_id, restart_at=None, failures=[], status=self._last_status(job))
            for state in _way_to_rest(job, finished):
                job = store.transition(connection, job, state, cause, self._plane.now())
            if job.change is not None and job.state == State.STOPPED and job.desired_state == Desired.RUNNING:
                take_up_change(connection, job, self._plane.now())
        self._plane.wake.set()

    def _fail(self, job: JobRecord, attempt: AttemptRecord | None, failure: Failure) -> None:
        if attempt is not None:
            end_attempt(self._plane, attempt, failure)
        now = self._plane.now()
        with self._plane.database.writing() as connection:
            job = store.get_job(connection, job.job_id)
            store.add_event(connection, job, "crash", failure.message, now)
            failures = [*job.failures, crash_of(job, failure, now.isoformat(), self._seen_status(job))]
            hopeless = not rules.may_restart(failure) or len(failures) >= self._plane.timing.crashes
            if hopeless and fall_back(connection, job, failure, now):
                return
            job = store.update_job(
                connection,
                job.job_id,
                failures=failures,
                last_error=failures[-1],
                status=self._last_status(job),
                restart_at=now + timedelta(seconds=self._plane.timing.pause(len(failures))),
            )
            if hopeless:
                self._give_up(connection, job)
            else:
                self._recover(connection, job, failure, now)

    def _cannot(self, job: JobRecord, failure: Failure) -> None:
        """Something of our own failed. On the way to rest it is tried again, since nothing else can be done."""
        if job.state in (State.STARTING, State.RUNNING, State.RECOVERING):
            self._fail(job, None, failure)

    def _recover(self, connection: sa.Connection, job: JobRecord, failure: Failure, now: datetime) -> None:
        store.update_job(connection, job.job_id, restarts=job.restarts + 1)
        if job.state != State.RECOVERING:
            store.transition(connection, job, State.RECOVERING, failure.message, now)

    def _give_up(self, connection: sa.Connection, job: JobRecord) -> None:
        """FAILED, with the first error of the loop: the later ones are often only its echo."""
        first, now = job.failures[0], self._plane.now()
        store.update_job(connection, job.job_id, last_error=first, restart_at=None, change=None, prepare=None)
        job = store.transition(connection, job, State.FAILING, first["message"], now)
        store.transition(connection, job, State.FAILED, first["message"], now)

    def _last_status(self, job: JobRecord) -> dict[str, Any] | None:
        seen = self._seen_status(job)
        return job.status if seen is None else seen.model_dump(mode="json")

    def _seen_status(self, job: JobRecord) -> DriverStatus | None:
        seen = self._plane.observations.find(job.job_id)
        return None if seen is None else seen.status


def _way_to_rest(job: JobRecord, finished: bool) -> tuple[State, ...]:
    """The transitions from where the job is to where it rests."""
    if job.state == State.FAILING:
        return (State.FAILED,)
    if job.desired_state == Desired.CANCELED:
        way = (State.CANCELING, State.CANCELED)
    elif finished:
        return (State.FINISHED,)
    else:
        way = (State.STOPPING, State.STOPPED)
    return way if way[0] in TRANSITIONS[job.state] else way[1:]


def _failure_of(error: TidemarkError | OSError) -> Failure:
    return Failure.of(error) if isinstance(error, TidemarkError) else rules.crash(str(error))
