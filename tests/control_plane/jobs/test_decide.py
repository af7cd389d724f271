"""The rules by which jobs are judged, as a table: what is wanted and seen, and what to do about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidemark.control_plane.jobs.decide import (
    Action,
    AskStop,
    Failing,
    Launch,
    Rest,
    Running,
    Situation,
    Wait,
    decide,
)
from tidemark.control_plane.jobs.lifecycle import RESTING, TERMINAL, TRANSITIONS, Desired, State, check_transition
from tidemark.control_plane.jobs.plane import Timing
from tidemark.control_plane.store.records import AttemptRecord, JobRecord
from tidemark.errors import Conflict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = JobRecord(
    job_id="shop-1",
    name="shop",
    state=State.RUNNING,
    desired_state=Desired.RUNNING,
    since=NOW,
    created_at=NOW,
    definition="",
    plan={},
    attempt=1,
    restarts=0,
    failures=[],
    restart_at=None,
    last_error=None,
    change=None,
    prepare=None,
    final_savepoint=None,
    status=None,
)
ATTEMPT = AttemptRecord(
    job_id="shop-1",
    attempt=1,
    token_hash="",
    mark="",
    launched_at=NOW,
    process={"pid": 1},
    acked_seq=0,
    last_word=None,
    started=True,
    stop_asked_at=None,
    closed_at=None,
)
WELL = Situation(JOB, ATTEMPT, NOW, Timing(), uptime=60, running=True, silent=0.5, watched=60)
FINISHED = {"kind": "ended", "state": "FINISHED"}
STOPPED = {"kind": "ended", "state": "STOPPED"}
FAILED = {"kind": "failed", "failure": {"code": "c", "domain": "user", "retry": "never", "message": "m"}}
PASSING = {"kind": "failed", "failure": {"code": "c", "domain": "internal", "retry": "restart", "message": "m"}}


def job(**fields: Any) -> JobRecord:
    return replace(JOB, **fields)


def seen(attempt: dict[str, Any] | None = None, job: JobRecord = JOB, **fields: Any) -> Situation:
    return replace(WELL, job=job, attempt=replace(ATTEMPT, **(attempt or {})), **fields)


def without_attempt(job: JobRecord) -> Situation:
    return replace(WELL, job=job, attempt=None)


stopping = job(state=State.STOPPING, desired_state=Desired.STOPPED)
canceling = job(state=State.CANCELING, desired_state=Desired.CANCELED)
changing = job(state=State.STOPPING, change={"what": "rescale"})
recovering = job(state=State.RECOVERING)

CASES: list[tuple[str, Situation, type[Action] | Action]] = [
    ("all is well", WELL, Wait()),
    ("a new job is started", without_attempt(job(state=State.STARTING, attempt=0)), Launch()),
    ("a crashed job is started again", without_attempt(recovering), Launch()),
    ("not before its pause", without_attempt(job(state=State.RECOVERING, restart_at=NOW + timedelta(1))), Wait()),
    ("a running job without a driver", without_attempt(JOB), Failing),
    ("a stop without a driver", without_attempt(stopping), Rest("there is no driver")),
    ("half way to FAILED", without_attempt(job(state=State.FAILING)), Rest("there is no driver")),
    ("the driver begins", seen(job=job(state=State.STARTING)), Running()),
    (
        "the driver is not there yet",
        seen({"started": False}, job(state=State.STARTING), silent=None, watched=9),
        Wait(),
    ),
    ("it takes too long", seen({"started": False}, job(state=State.STARTING), silent=None, watched=121), Failing),
    ("it is gone", seen(running=False, how_it_ended="killed"), Failing),
    ("it is gone while stopping", seen(job=stopping, running=False), Rest),
    ("it is gone before a change", seen(job=changing, running=False), Rest),
    ("4.9 s of silence", seen(silent=4.9), Wait()),
    ("5.1 s of silence", seen(silent=5.1), Failing),
    ("silence after our own start", seen(silent=9.0, uptime=14), Wait()),
    ("adopted and not heard yet", seen(silent=None, watched=14, uptime=14), Wait()),
    ("adopted and never heard", seen(silent=None, watched=16, uptime=16), Failing),
    ("a stop is passed on", seen(job=stopping), AskStop()),
    ("once", seen({"stop_asked_at": NOW}, stopping), Wait()),
    ("a change stops it too", seen(job=changing), AskStop()),
    ("a cancel has less patience", seen({"stop_asked_at": NOW - timedelta(seconds=16)}, canceling), Rest),
    ("than a stop", seen({"stop_asked_at": NOW - timedelta(seconds=16)}, stopping), Wait()),
    ("which ends too", seen({"stop_asked_at": NOW - timedelta(seconds=601)}, stopping), Rest),
    ("a last word and still there", seen({"last_word": FINISHED}, since_last_word=1), Wait()),
    ("still there after the farewell", seen({"last_word": FINISHED}, since_last_word=16), Rest),
    ("finished", seen({"last_word": FINISHED}, running=False), Rest("all input was read", finished=True)),
    ("stopped as wanted", seen({"last_word": STOPPED}, stopping, running=False), Rest),
    ("stopped as nobody wanted", seen({"last_word": STOPPED}, running=False), Failing),
    ("failed", seen({"last_word": FAILED}, running=False), Failing),
    ("failed for good while stopping", seen({"last_word": FAILED}, stopping, running=False), Failing),
    ("failed somehow while stopping", seen({"last_word": PASSING}, stopping, running=False), Rest),
    ("failed while canceling", seen({"last_word": FAILED}, canceling, running=False), Rest),
    ("failed before a change", seen({"last_word": PASSING}, changing, running=False), Rest),
]


@pytest.mark.parametrize(("situation", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_done(situation: Situation, expected: type[Action] | Action) -> None:
    action = decide(situation)
    assert isinstance(action, expected) if isinstance(expected, type) else action == expected


def test_back_off_doubles_up_to_a_limit() -> None:
    assert [Timing().pause(crashes) for crashes in range(1, 8)] == [0.5, 1, 2, 4, 8, 10, 10]


def test_the_table_of_transitions_has_no_hole() -> None:
    assert set(TRANSITIONS) == set(State)
    reachable = {new for ways in TRANSITIONS.values() for new in ways}
    assert reachable == set(State) - {State.CREATED}
    for state in State:
        if not TRANSITIONS[state]:
            assert state in TERMINAL
        if state not in RESTING:
            assert {State.CANCELING, State.CANCELED, State.FAILED} & set(TRANSITIONS[state]), state


def test_an_illegal_transition_says_what_is_possible() -> None:
    with pytest.raises(Conflict, match="CANCELED and cannot become RUNNING") as refused:
        check_transition("shop", State.CANCELED, State.RUNNING)
    assert "its last state" in str(refused.value.hint)
