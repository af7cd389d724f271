"""The shapes of every answer, as `/openapi.json` shows them. Names are the contract's."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer

from tidemark.control_plane.jobs.lifecycle import Desired, State


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace(".000000", "").replace("+00:00", "Z")


Moment = Annotated[datetime, PlainSerializer(_iso, return_type=str, when_used="json")]
Finite = Annotated[float, AfterValidator(lambda value: round(value, 3))]


class Model(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class DiagnosticModel(Model):
    code: str
    message: str
    hint: str | None = None
    path: str
    line: int | None = None
    column: int | None = None


class ErrorBody(Model):
    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["there is no job 'orders'"])
    hint: str | None = None
    diagnostics: list[DiagnosticModel] | None = None


class ErrorEnvelope(Model):
    """What every refusal looks like."""

    error: ErrorBody


class LastError(Model):
    code: str
    domain: str
    message: str
    hint: str | None = None
    operator: str | None = None
    at: Moment


class Partition(Model):
    partition: int
    watermark: Moment | None = None
    max_event_time: Moment | None = None
    offset: int | None = None
    end_offset: int | None = None
    lag: int | None = None
    idle: bool = False


class Source(Model):
    watermark: Moment | None = None
    partitions: list[Partition] = []


class Operator(Model):
    id: str
    type: str
    rows_in: int = 0
    rows_out: int = 0
    events_per_second: float = 0.0
    late: int = 0
    state_rows: int | None = None
    state_bytes: int | None = None
    busy: float | None = None


class Sink(Model):
    id: str
    committed_epoch: int | None = None
    rows: int = 0
    last_commit_at: Moment | None = None


class Epoch(Model):
    id: int
    duration_ms: int | None = None
    events: int | None = None


class Checkpoint(Model):
    epoch: int
    at: Moment
    duration_ms: int
    bytes: int


class Query(Model):
    id: str
    epoch: int | None = None
    watermark: Moment | None = None


class Backpressure(Model):
    level: Literal["none", "low", "high"] = "none"
    lag_events: int | None = None
    lag_seconds: Finite | None = None
    eta_seconds: Finite | None = None
    cause: str | None = None


class Recommendation(Model):
    parallelism: int
    reason: str


class Alert(Model):
    name: str
    severity: str
    message: str
    step: str | None = None


class Job(Model):
    """A job and, as of its driver's last word, its progress."""

    job_id: str = Field(examples=["orders-per-minute-1f0c9a3e"])
    name: str = Field(examples=["orders-per-minute"])
    state: State
    desired_state: Desired
    since: Moment
    created_at: Moment
    mode: str = "microbatch"
    parallelism: int | None = None
    attempt: int
    restarts: int
    last_error: LastError | None = None
    watermark: Moment | None = None
    sources: dict[str, Source] = {}
    operators: list[Operator] = []
    sinks: list[Sink] = []
    epoch: Epoch | None = None
    checkpoint: Checkpoint | None = None
    queries: list[Query] = []
    backpressure: Backpressure = Backpressure()
    recommendation: Recommendation | None = None
    alerts: list[Alert] = []


class SubmittedJob(Job):
    """The new job, with what the compiler warns about."""

    warnings: list[DiagnosticModel] = []


class Jobs(Model):
    jobs: list[Job]
    next_cursor: str | None = Field(None, description="Give it as `cursor` for the next page; null on the last one.")


class DryRun(Model):
    """A definition that could be submitted, and how it would be carried out."""

    name: str
    plan: dict[str, Any]
    warnings: list[DiagnosticModel] = []


class SavepointAccepted(Model):
    savepoint_id: str
    status_url: str


class CancelAccepted(Model):
    """`savepoint_id` and `status_url` when a final savepoint was asked for."""

    job_id: str
    state: State
    savepoint_id: str | None = None
    status_url: str | None = None


class Savepoint(Model):
    savepoint_id: str
    job_id: str
    name: str
    state: Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
    location: str
    created_at: Moment
    completed_at: Moment | None = None
    epoch: int | None = None
    offsets: dict[str, Any] | None = Field(None, description="By query and source: what comes next.")
    watermark: Moment | None = None
    parallelism: int | None = None
    bytes: int | None = None
    checksum: str | None = None
    failure: LastError | None = None


class Savepoints(Model):
    savepoints: list[Savepoint]


class OperatorVerdict(Model):
    id: str
    verdict: Literal["kept", "rebuilt", "lost", "new"]
    reason: str
    events: int | None = Field(
        None, description="Of what is rebuilt: how many events are read again, as of the last epoch; null if unknown."
    )


class QueryVerdict(OperatorVerdict):
    operators: list[OperatorVerdict]


class Upgrade(Model):
    job_id: str
    state: State
    dry_run: bool
    queries: list[QueryVerdict]


class Rescale(Model):
    model_config = ConfigDict(extra="forbid")

    parallelism: int = Field(ge=1, le=1024, examples=[4], strict=True)


class Event(Model):
    event_id: int
    at: Moment
    kind: str = Field(examples=["transition"])
    from_state: str | None = None
    to_state: str | None = None
    duration_ms: int | None = Field(None, description="How long the state before lasted.")
    attempt: int
    cause: str


class Events(Model):
    events: list[Event]
    next_cursor: str | None = None


class LogLines(Model):
    lines: list[str]


class KeyedState(Model):
    """What an operator keeps for a key, as of a committed epoch; of a window one entry for each that is open."""

    operator: str
    key: dict[str, Any]
    query: str
    epoch: int
    age_ms: int
    entries: list[dict[str, Any]]


class Release(Model):
    event_after: Moment | None = None
    idle_in_seconds: float | None = None
    words: str


class WaitingWindow(Model):
    operator: str
    window_end: Moment | None = None
    open: int | None = None
    needs_event_at: Moment | None = None
    words: str


class Chain(Model):
    query: str
    watermark: Moment | None = None
    source: str | None = Field(None, description="The source that holds the watermark.")
    partition: int | None = Field(None, description="The partition of it that does.")
    sources: dict[str, Moment | None]
    release: Release | None = None
    waiting: list[WaitingWindow] = []
    words: str


class Watermark(Model):
    """Why the watermark is where it is, the query that is furthest behind first."""

    job_id: str
    watermark: Moment | None = None
    queries: list[Chain]


class AuditItem(Model):
    audit_id: int
    at: Moment
    actor: str
    action: str
    target: str
    detail: str | None = None


class Audit(Model):
    entries: list[AuditItem]
    next_cursor: str | None = None


class Health(Model):
    status: Literal["ok"] = "ok"
