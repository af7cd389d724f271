"""What a driver and whoever started it say to each other: versioned, small, JSON.

`RunSpec` goes in when the driver starts. The driver then reports `DriverMessage`s: one JSON object a line on the
file descriptor it was given, or in heartbeats to the control plane that `RunSpec.control` names. It stops at an
epoch boundary on SIGINT or SIGTERM, and without a control plane at once when its standard input closes.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, TypeAdapter

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.protocol.message import Message
from tidemark.protocol.start import ControlEndpoint, Prepare

if TYPE_CHECKING:
    from tidemark.errors import TidemarkError


class RunSpec(Message):
    """One start of one job. `state` holds a folder per query; `base` is what relative paths in the job mean.

    `definition` is the text that was compiled, for savepoints; `secrets` the file in which values are stored.
    `prepare` is what must be true of the state before the queries start; it may be asked for again.
    """

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
    definition: str | None = None
    secrets: str | None = None
    control: ControlEndpoint | None = None
    prepare: Prepare | None = None


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

    sources: dict[str, SourceCounts] = Field(default_factory=dict)
    operators: dict[str, OperatorCounts] = Field(default_factory=dict)
    sinks: dict[str, SinkCounts] = Field(default_factory=dict)


class PartitionStatus(Message):
    """`offset` is the next to be read, `lag` what is unread; None where the source cannot tell.

    `quiet_ms` is the idle time since the last event: at the source's idle timeout the partition leaves the minimum.
    """

    partition: int
    watermark: datetime | None
    max_event_time: datetime | None
    idle: bool
    quiet_ms: int = 0
    offset: int | None = None
    end_offset: int | None = None
    lag: int | None = None


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
    """After every epoch of every query. `watermark` is the one the epoch ran with; `total` covers the whole job.

    `firing_ms` says of the operators whose windows closed how long it took from the watermark's passing their ends
    to the committed results; `sink_commit_ms` how long each sink took.
    """

    kind: Literal["epoch"] = "epoch"
    query: str
    epoch: int
    events: int
    duration_ms: int
    watermark: datetime | None
    next_watermark: datetime | None
    lag_events: int | None = None
    sources: dict[str, SourceStatus] = Field(default_factory=dict)
    total: Accounting = Accounting()
    firing_ms: dict[str, int] = Field(default_factory=dict)
    sink_commit_ms: dict[str, int] = Field(default_factory=dict)


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
