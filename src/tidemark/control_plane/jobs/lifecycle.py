"""The states of a job and every legal way from one to another. Nothing else may change a job's state."""

from __future__ import annotations

from enum import StrEnum

from tidemark.errors import Conflict


class State(StrEnum):
    CREATED = "CREATED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RECOVERING = "RECOVERING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILING = "FAILING"
    FAILED = "FAILED"
    FINISHED = "FINISHED"


class Desired(StrEnum):
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    CANCELED = "CANCELED"


TRANSITIONS: dict[State, tuple[State, ...]] = {
    State.CREATED: (State.STARTING, State.CANCELING),
    State.STARTING: (
        State.RUNNING,
        State.RECOVERING,
        State.STOPPING,
        State.CANCELING,
        State.FAILING,
        State.FINISHED,
    ),
    State.RUNNING: (State.RECOVERING, State.STOPPING, State.CANCELING, State.FAILING, State.FINISHED),
    State.RECOVERING: (State.RUNNING, State.STOPPING, State.CANCELING, State.FAILING, State.FINISHED),
    State.STOPPING: (State.STOPPED, State.CANCELING, State.FAILING, State.FINISHED),
    State.STOPPED: (State.STARTING, State.CANCELING),
    State.CANCELING: (State.CANCELED,),
    State.CANCELED: (),
    State.FAILING: (State.FAILED,),
    State.FAILED: (State.STARTING,),
    State.FINISHED: (),
}

TERMINAL = (State.CANCELED, State.FAILED, State.FINISHED)
RESTING = (State.CREATED, State.STOPPED, *TERMINAL)
WITH_DRIVER = tuple(state for state in State if state not in RESTING)


def check_transition(job: str, old: State, new: State) -> None:
    """Raises Conflict, saying what is possible, unless the table has it."""
    if new not in TRANSITIONS[old]:
        possible = ", ".join(TRANSITIONS[old]) or "nothing: this is its last state"
        raise Conflict(f"job {job!r} is {old} and cannot become {new}", hint=f"from {old} it can become {possible}")
