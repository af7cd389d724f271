"""What a driver and the control plane say over HTTP. The driver makes every call; nobody connects to it.

Messages are numbered and kept by the driver until they are acknowledged; commands have increasing ids. Both may
come twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from tidemark.protocol.message import Message
from tidemark.protocol.messages import AnyMessage, Failure
from tidemark.protocol.status import DriverStatus

FENCED_EXIT_CODE = 4


class SentMessage(Message):
    """A message of the driver with its number, 1 and up within an attempt.

    A hole means that the driver could not keep it: while the server is away too long, the oldest go.
    """

    seq: int
    at: datetime
    message: AnyMessage


class Heartbeat(Message):
    """Every second, and at once when there is something to tell."""

    version: Literal[1] = 1
    pid: int
    started_at: datetime
    messages: tuple[SentMessage, ...] = ()
    status: DriverStatus | None = None


class HeartbeatAnswer(Message):
    """`acked_seq` is the highest number stored. A fenced driver ends at once with FENCED_EXIT_CODE."""

    acked_seq: int
    fenced: bool = False


class Stop(Message):
    """Stop at the end of the epoch."""

    kind: Literal["stop"] = "stop"
    id: int


class TakeSavepoint(Message):
    """Write a consistent copy of the job's state to `location` while the job goes on.

    With `then_stop` the job stops at the end of its epochs first and ends afterwards, so nothing is written to a sink
    after the savepoint. The result is the summary of the manifest.
    """

    kind: Literal["savepoint"] = "savepoint"
    id: int
    savepoint_id: str
    location: str
    then_stop: bool = False


class StateGet(Message):
    """Look a key up in the committed state. `key` is JSON of the key columns, or the bare text of a single one."""

    kind: Literal["state_get"] = "state_get"
    id: int
    operator: str
    key: str


AnyCommand = Annotated[Stop | TakeSavepoint | StateGet, Field(discriminator="kind")]
Command: TypeAdapter[Stop | TakeSavepoint | StateGet] = TypeAdapter(AnyCommand)


class Commands(Message):
    """The answer to a long poll: what was asked for after the id given; empty when nothing came in time."""

    commands: tuple[AnyCommand, ...] = ()


class CommandResult(Message):
    """`failure` when it could not be done, else `result`, whose shape depends on the command."""

    id: int
    ok: bool
    failure: Failure | None = None
    result: dict[str, Any] | None = None
