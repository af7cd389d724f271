"""The state of a running job as its driver sees it: a snapshot that replaces the one before."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tidemark.protocol.message import Message
from tidemark.protocol.messages import Accounting, SourceStatus


class CheckpointStatus(Message):
    """The newest committed epoch of a query on disk. `duration_ms` is what Spark took to make it durable."""

    epoch: int
    at: datetime
    duration_ms: int
    bytes: int


class QueryStatus(Message):
    """`epoch` is the last committed one; None before the first."""

    id: str
    epoch: int | None
    watermark: datetime | None
    duration_ms: int | None = None
    events: int | None = None
    committed_at: datetime | None = None
    checkpoint: CheckpointStatus | None = None


class OperatorStatus(Message):
    """Counts since the lineage began. `busy` is the share of the slots that its stages took, 0 to 1.

    Operators that Spark runs as one stage share its figure.
    """

    id: str
    type: str
    rows_in: int
    rows_out: int
    events_per_second: float = 0.0
    late: int = 0
    state_rows: int | None = None
    state_bytes: int | None = None
    busy: float | None = None


class SinkStatus(Message):
    id: str
    committed_epoch: int | None
    rows: int
    last_commit_at: datetime | None = None


class OpenWindows(Message):
    """`rows` is how many (key, window) pairs are open; `earliest_end` the next to close, where a driver knows it."""

    rows: int
    earliest_end: datetime | None = None


class DriverStatus(Message):
    """`watermark` is the smallest of the queries'; None while one of them has none.

    `at` is when the driver's main loop last looked around: heartbeats that go on while it stands still mean that the
    driver hangs. `lag_events` is what waits for the query that is farthest behind; `slowest_step` is the source,
    operator or sink that its slowest query spends its time on, whether or not that is too much.
    """

    state: Literal["STARTING", "RUNNING", "STOPPING"]
    at: datetime | None = None
    parallelism: int | None = None
    watermark: datetime | None = None
    queries: tuple[QueryStatus, ...] = ()
    sources: dict[str, SourceStatus] = Field(default_factory=dict)
    operators: tuple[OperatorStatus, ...] = ()
    sinks: tuple[SinkStatus, ...] = ()
    lag_events: int | None = None
    slowest_step: str | None = None
    total: Accounting = Accounting()
    open_windows: dict[str, OpenWindows] = Field(default_factory=dict)
