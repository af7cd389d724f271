"""What a driver and whoever started it say to each other: versioned, small, JSON.

`RunSpec` goes in when the driver starts. The driver then reports `DriverMessage`s, one JSON object a line, on the
file descriptor it was given. It stops at an epoch boundary on SIGINT or SIGTERM, and at once when its standard
input closes: that is how it learns that its supervisor is gone.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tidemark.compiler.plan.plan import ExecutionPlan

if TYPE_CHECKING:
    from tidemark.errors import TidemarkError


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunSpec(Message):
    """One start of one job. `state` holds a folder per query; `base` is what relative paths in the job mean."""

    version: Literal[1] = 1
    plan: ExecutionPlan
    lineage: str
    attempt: int
    first_started_at: datetime
    state: str
    base: str
    master: str = "local[*,4]"
    driver_memory: str = "2g"
    until_drained: bool = False


class SourceCounts(Message):
    """`events_in = accepted + errors`, each counted on its own."""

    events_in: int = 0
    accepted: int = 0
    errors: int = 0


class OperatorCounts(Message):
    """`rows_in = passed + filtered + duplicates + late`, each counted on its own."""

    rows_in: int = 0
    rows_out: int = 0
    passed: int = 0
    filtered: int = 0
    duplicates: int = 0
    late: int = 0


class SinkCounts(Message):
    """`refused` rows were offered too, and are not in the target for what is in them."""

    rows: int = 0
    refused: int = 0


class Accounting(Message):
    """The identity of every source and operator, for one epoch or in total since the lineage began."""

    sources: dict[str, SourceCounts] = {}
    operators: dict[str, OperatorCounts] = {}
    sinks: dict[str, SinkCounts] = {}


class PartitionStatus(Message):
    partition: int
    watermark: datetime | None
    max_event_time: datetime | None
    idle: bool


class SourceStatus(Message):
    watermark: datetime | None
    idle: bool
    partitions: tuple[PartitionStatus, ...]


class Failure(Message):
    """An error as its fields; `step` is the id of the source, operator or sink."""

    code: str
    domain: str
    retry: str
    message: str
    hint: str | None = None
    step: str | None = None

    @classmethod
    def of(cls, error: TidemarkError) -> Failure:
        return cls(
            code=error.code,
            domain=error.domain,
            retry=error.retry,
            message=error.message,
            hint=error.hint,
            step=error.step,
        )


class Started(Message):
    kind: Literal["started"] = "started"
    attempt: int
    queries: tuple[str, ...]
    recovered: bool


class EpochCommitted(Message):
    """After every epoch of every query. `watermark` is the one the epoch ran with; `total` covers the whole job."""

    kind: Literal["epoch"] = "epoch"
    query: str
    epoch: int
    events: int
    duration_ms: int
    watermark: datetime | None
    next_watermark: datetime | None
    lag_events: int | None = None
    sources: dict[str, SourceStatus] = {}
    total: Accounting = Accounting()


class ConsoleLine(Message):
    kind: Literal["console"] = "console"
    sink: str
    text: str


class Warned(Message):
    kind: Literal["warning"] = "warning"
    code: str
    message: str
    step: str | None = None


class Failed(Message):
    kind: Literal["failed"] = "failed"
    failure: Failure


class Ended(Message):
    """The last word of a driver that was not killed. FINISHED only after a drain; `epochs` counts committed ones."""

    kind: Literal["ended"] = "ended"
    state: Literal["FINISHED", "STOPPED"]
    epochs: int
    watermark: datetime | None
    total: Accounting


AnyMessage = Annotated[Started | EpochCommitted | ConsoleLine | Warned | Failed | Ended, Field(discriminator="kind")]
DriverMessage: TypeAdapter[Started | EpochCommitted | ConsoleLine | Warned | Failed | Ended] = TypeAdapter(AnyMessage)
