"""What to do about a job next, from what is wanted and what is seen. Pure: the reconcile loop carries it out.

The rules are asked in order, and the first that has an answer decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tidemark.control_plane.jobs.lifecycle import Desired, State
from tidemark.control_plane.jobs.plane import Timing
from tidemark.control_plane.store.records import AttemptRecord, JobRecord
from tidemark.errors import Domain, EngineFault, Retry
from tidemark.protocol.messages import Failure


@dataclass(frozen=True)
class Situation:
    """`attempt` is the one that may write, None when there is none. Times are in seconds.

    `silent` counts from the last heartbeat; None before the first. `since_last_word` is None without one.
    """

    job: JobRecord
    attempt: AttemptRecord | None
    now: datetime
    timing: Timing
    uptime: float
    running: bool = False
    silent: float | None = None
    watched: float = 0.0
    since_last_word: float | None = None
    how_it_ended: str = ""

    @property
    def should_rest(self) -> bool:
        return self.job.desired_state != Desired.RUNNING or self.job.change is not None


@dataclass(frozen=True)
class Launch:
    """Start a driver."""


@dataclass(frozen=True)
class AskStop:
    """Tell the driver to stop at the end of its epoch."""


@dataclass(frozen=True)
class Running:
    """The driver has begun its work."""


@dataclass(frozen=True)
class Rest:
    """End the attempt, if there is one, and come to rest as wanted, or go on with the change that waits."""

    cause: str
    finished: bool = False


@dataclass(frozen=True)
class Failing:
    """End the attempt; a new one follows when the failure allows it."""

    failure: Failure


@dataclass(frozen=True)
class Wait:
    """Nothing to do yet."""


Action = Launch | AskStop | Running | Rest | Failing | Wait


def decide(situation: Situation) -> Action:
    answers = (rule(situation) for rule in RULES)
    return next((answer for answer in answers if answer is not None), Wait())


def may_restart(failure: Failure) -> bool:
    return failure.retry != Retry.NEVER and failure.domain != Domain.USER


def crash(message: str) -> Failure:
    return Failure(
        code=EngineFault.code,
        domain=EngineFault.domain,
        retry=EngineFault.retry,
        message=message,
        hint="the job's log may say more",
    )


def _without_attempt(seen: Situation) -> Action | None:
    if seen.attempt is not None:
        return None
    if seen.should_rest or seen.job.state == State.FAILING:
        return Rest("there is no driver")
    if seen.job.state == State.RUNNING:
        return Failing(crash("the driver is gone"))
    due = seen.job.restart_at is None or seen.job.restart_at <= seen.now
    return Launch() if due else Wait()


def _last_word(seen: Situation) -> Action | None:
    """A driver that has said its last word gets a moment to end by itself."""
    if seen.attempt is None or seen.attempt.last_word is None:
        return None
    if seen.running and (seen.since_last_word or 0.0) < seen.timing.farewell:
        return Wait()
    word = seen.attempt.last_word
    if word["kind"] == "failed":
        return _failed(seen, Failure.model_validate(word["failure"]))
    if word["state"] == "FINISHED":
        return Rest("all input was read", finished=True)
    if seen.should_rest:
        return Rest("the driver stopped at the end of its epoch")
    return Failing(crash("the driver was stopped from outside"))


def _failed(seen: Situation, failure: Failure) -> Action:
    """On the way to rest a failure that a restart would mend is no matter, and in a cancel none is."""
    canceled = seen.job.desired_state == Desired.CANCELED
    if seen.should_rest and (canceled or may_restart(failure)):
        return Rest(f"{failure.message} while it was stopping")
    return Failing(failure)


def _process_gone(seen: Situation) -> Action | None:
    if seen.running:
        return None
    return _lost(seen, seen.how_it_ended or "the driver is gone")


def _silent(seen: Situation) -> Action | None:
    """None is judged silent soon after the control plane's own start: the driver has to find it first."""
    heartbeat, own_start = seen.timing.heartbeat, seen.timing.own_start
    if seen.silent is not None:
        overdue = seen.silent > heartbeat and seen.uptime > own_start
        return _lost(seen, f"no heartbeat for {heartbeat:g} s") if overdue else None
    patience = own_start if seen.attempt and seen.attempt.started else seen.timing.driver_start
    return _lost(seen, f"no heartbeat within {patience:g} s of its start") if seen.watched > patience else None


def _lost(seen: Situation, how: str) -> Action:
    return Rest(f"{how} while it was stopping") if seen.should_rest else Failing(crash(how))


def _stop_wanted(seen: Situation) -> Action | None:
    if not seen.should_rest or seen.attempt is None:
        return None
    asked_at = seen.attempt.stop_asked_at
    if asked_at is None:
        return AskStop()
    patience = seen.timing.cancel if seen.job.desired_state == Desired.CANCELED else seen.timing.stop
    if (seen.now - asked_at).total_seconds() > patience:
        return Rest(f"it did not stop within {patience:g} s and was killed")
    return Wait()


def _started(seen: Situation) -> Action | None:
    begins = seen.job.state in (State.STARTING, State.RECOVERING)
    return Running() if begins and seen.attempt is not None and seen.attempt.started else None


RULES: tuple[Callable[[Situation], Action | None], ...] = (
    _without_attempt,
    _last_word,
    _process_gone,
    _silent,
    _stop_wanted,
    _started,
)
