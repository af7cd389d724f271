"""What a start may ask for beside running: a control plane to report to, and state to bring into shape first."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tidemark.protocol.message import Message


class ControlEndpoint(Message):
    """Where a driver reports. `address_file` holds `{"url": ...}` and is read again when the server is away."""

    job_id: str
    address_file: str
    token: str


class Restore(Message):
    """The state of a new job comes from a savepoint. Nothing is done when this job has state already.

    `parallelism` of None keeps that of the savepoint.
    """

    kind: Literal["restore"] = "restore"
    location: str
    parallelism: int | None = None


class Rescale(Message):
    """The state is spread over that many key groups. Nothing is done when it already is."""

    kind: Literal["rescale"] = "rescale"
    parallelism: int


class Rebuild(Message):
    """The state of these queries has another shape in this plan: it is made anew by reading their input again.

    What they have delivered is not delivered again. The others keep their state. Nothing is done when it was done.
    """

    kind: Literal["rebuild"] = "rebuild"
    queries: tuple[str, ...]


Prepare = Annotated[Restore | Rescale | Rebuild, Field(discriminator="kind")]
