"""What drivers tell the control plane, and what they are told: heartbeats, commands, results.

Whatever must not be forgotten is in the store before it is acknowledged. All of it may come twice.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.jobs import changes
from tidemark.control_plane.jobs.crash_row import has_got_on
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.savepoints.deletion import remove_files
from tidemark.control_plane.savepoints.service import confirmed, keep_outcome
from tidemark.control_plane.store import commands
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.access import hash_token, same_hash
from tidemark.control_plane.store.records import AttemptRecord, JobRecord, SavepointRecord
from tidemark.errors import Forbidden, NotFound
from tidemark.protocol.control import CommandResult, Commands, Heartbeat, HeartbeatAnswer, SentMessage
from tidemark.protocol.messages import Ended, EpochCommitted, Failed, Started, Warned
from tidemark.redaction import Redactor, secrets_of

RESCALE_FAILED = "rescale_failed"


class Drivers:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def heartbeat(self, job_id: str, attempt: int, token: str, beat: Heartbeat) -> HeartbeatAnswer:
        """Stores what matters of the messages, then acknowledges them all. An attempt that was ended is fenced."""
        with self._plane.database.reading() as connection:
            known = self._authenticate(connection, job_id, attempt, token)
            job = store.get_job(connection, job_id)
        if known.closed_at is not None or attempt != job.attempt:
            return HeartbeatAnswer(acked_seq=known.acked_seq, fenced=True)
        seen = self._plane.observations.of(job_id, attempt, self._plane.monotonic())
        acked = max(known.acked_seq, seen.acked_seq)
        news = [sent for sent in beat.messages if sent.seq > acked]
        if news:
            self._take(job, known, news)
            seen.acked_seq = max(sent.seq for sent in news)
        if not seen.committed and has_got_on(job.failures, beat.status):
            self._end_row_of_crashes(job.job_id)
            seen.committed = True
        seen.hear(self._plane.monotonic(), beat.status)
        return HeartbeatAnswer(acked_seq=max(acked, seen.acked_seq))

    def commands(self, job_id: str, attempt: int, token: str, after: int) -> Commands:
        """What this attempt was asked after that command and has not answered; nothing for one that was ended."""
        with self._plane.database.reading() as connection:
            known = self._authenticate(connection, job_id, attempt, token)
            waiting = [] if known.closed_at else commands.commands_after(connection, job_id, attempt, after)
        return Commands.model_validate({"commands": waiting})

    def result(self, job_id: str, attempt: int, token: str, result: CommandResult) -> None:
        """Keeps what became of a command; one that is unknown or was answered before is let pass."""
        with self._plane.database.reading() as connection:
            self._authenticate(connection, job_id, attempt, token)
            command = commands.get_command(connection, job_id, result.id)
            job = store.get_job(connection, job_id)
        if command is None or command.attempt != attempt:
            raise NotFound(f"attempt {attempt} was given no command {result.id}")
        outcome = self._redactor(job).data(result.model_dump(mode="json"))
        is_savepoint = command.body["kind"] == "savepoint"
        if is_savepoint and command.result is None:
            outcome = confirmed(outcome, command.body["location"])
        retired: list[SavepointRecord] = []
        with self._plane.database.writing() as connection:
            if commands.keep_result(connection, command, outcome) and is_savepoint:
                job = store.get_job(connection, job_id)
                retired = keep_outcome(connection, self._plane, job, command.body, outcome)
        remove_files(retired)
        self._plane.bell.ring(job_id)
        self._plane.wake.set()

    def _authenticate(self, connection: sa.Connection, job_id: str, attempt: int, token: str) -> AttemptRecord:
        known = store.get_attempt(connection, job_id, attempt)
        if known is None or not same_hash(known.token_hash, hash_token(token)):
            raise Forbidden("this is not the token of that attempt")
        return known

    def _take(self, job: JobRecord, known: AttemptRecord, news: list[SentMessage]) -> None:
        """Epochs change nothing in the store, but for the first: it ends a row of crashes."""
        last = max(sent.seq for sent in news)
        seen = self._plane.observations.of(job.job_id, known.attempt, self._plane.monotonic())
        epochs = [sent.message for sent in news if isinstance(sent.message, EpochCommitted)]
        for epoch in epochs:
            self._plane.metrics.observe(job.name, epoch)
        matters = [sent for sent in news if isinstance(sent.message, Started | Warned | Failed | Ended)]
        first_epoch = bool(epochs) and not seen.committed
        if not matters and not first_epoch:
            return
        with self._plane.database.writing() as connection:
            self._keep(connection, job, known, matters, last)
        if first_epoch and job.failures:
            self._end_row_of_crashes(job.job_id)
        seen.committed = seen.committed or bool(epochs)
        if any(isinstance(sent.message, Failed | Ended) for sent in matters):
            seen.ended_at = self._plane.monotonic()
        self._plane.wake.set()

    def _end_row_of_crashes(self, job_id: str) -> None:
        with self._plane.database.writing() as connection:
            store.update_job(connection, job_id, failures=[])

    def _keep(
        self, connection: sa.Connection, job: JobRecord, known: AttemptRecord, sent: list[SentMessage], last: int
    ) -> None:
        fields: dict[str, Any] = {"acked_seq": last}
        for each in sent:
            match each.message:
                case Started():
                    fields["started"] = True
                case Warned(code=code, message=text, step=step):
                    if code == RESCALE_FAILED:
                        changes.keep_parallelism(connection, job)
                    cause = self._redactor(job).text(f"{step}: {text}" if step else text)
                    store.add_event(connection, job, "warning", cause, each.at)
                case Failed() | Ended() as word:
                    fields["last_word"] = self._redactor(job).data(word.model_dump(mode="json"))
        store.update_attempt(connection, job.job_id, known.attempt, **fields)

    def _redactor(self, job: JobRecord) -> Redactor:
        return self._plane.variables.redactor(secrets_of(job.plan))
