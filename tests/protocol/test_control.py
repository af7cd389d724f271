"""What goes over the wire comes back the same, and what is not understood is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from tidemark.protocol.control import Command, CommandResult, Heartbeat, SentMessage, StateGet, Stop, TakeSavepoint
from tidemark.protocol.messages import Failure, Warned
from tidemark.protocol.status import DriverStatus, OperatorStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMMANDS = (
    Stop(id=1),
    TakeSavepoint(id=2, savepoint_id="s", location="/savepoints/s"),
    StateGet(id=3, operator="per_min", key='{"store": "s1"}'),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.kind)
def test_a_command_is_known_by_its_kind(command: Stop | TakeSavepoint | StateGet) -> None:
    assert Command.validate_json(command.model_dump_json()) == command


def test_a_heartbeat_carries_messages_and_the_state_of_the_job() -> None:
    status = DriverStatus(
        state="RUNNING", operators=(OperatorStatus(id="per_min", type="window", rows_in=3, rows_out=1, busy=0.5),)
    )
    sent = SentMessage(seq=1, at=NOW, message=Warned(code="w", message="m"))
    heartbeat = Heartbeat(pid=7, started_at=NOW, messages=(sent,), status=status)
    assert Heartbeat.model_validate_json(heartbeat.model_dump_json()) == heartbeat


def test_a_result_is_a_failure_or_a_value() -> None:
    failure = Failure(code="c", domain="user", retry="never", message="m")
    for result in (CommandResult(id=1, ok=True, result={"a": 1}), CommandResult(id=1, ok=False, failure=failure)):
        assert CommandResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(
    "text", [{"kind": "explode", "id": 1}, {"kind": "stop", "id": 1, "now": True}, {"kind": "stop"}]
)
def test_what_is_not_understood_is_refused(text: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Command.validate_python(text)
