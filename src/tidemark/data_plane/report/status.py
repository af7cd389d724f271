"""The snapshot of a running job, put together from its queries. Nothing here asks Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from tidemark.compiler.plan.plan import ExecutionPlan, WindowPlan
from tidemark.connectors.connector import PartitionOffsets
from tidemark.data_plane.checkpoint import Checkpoint, size_on_disk
from tidemark.data_plane.epoch.progress import Progress, to_datetime
from tidemark.data_plane.report.measures import EpochMeasures
from tidemark.data_plane.report.slowest_step import slowest_step
from tidemark.protocol.messages import Accounting, EpochCommitted, OperatorCounts, SourceStatus
from tidemark.protocol.status import (
    CheckpointStatus,
    DriverStatus,
    OpenWindows,
    OperatorStatus,
    QueryStatus,
    SinkStatus,
)
from tidemark.watermarks import smallest_watermark

# A query that has committed nothing for so long has nothing to do.
_QUIET_SECONDS = 5.0
_DISK_SECONDS = 10.0


@dataclass
class QueryBoard:
    """What is known of one query. `committed` is called by one thread, the rest by another.

    Of one that has `stopped`, every epoch is committed, though Spark's word of the last ones may come too late.
    """

    id: str
    progress: Progress
    checkpoint: Checkpoint
    report: EpochCommitted | None = None
    measures: EpochMeasures | None = None
    committed_at: datetime | None = None
    stopped: bool = False
    rates: dict[str, float] = field(default_factory=dict)
    sink_commits: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    _clock: float = field(default_factory=time.monotonic)
    _bytes: int = 0
    _sized: float = float("-inf")

    def committed(self, report: EpochCommitted, measures: EpochMeasures) -> None:
        now, at = time.monotonic(), datetime.now(UTC)
        before = self.report.total if self.report else None
        if before is not None:
            self.rates = _rates(before, report.total, max(now - self._clock, 1e-3))
        if now - self._sized > _DISK_SECONDS:
            self._bytes, self._sized = size_on_disk(self.checkpoint.folder), now
        self.sink_commits = {**self.sink_commits, **dict.fromkeys(report.sink_commit_ms, (report.epoch, at))}
        self.report, self.measures, self.committed_at, self._clock = report, measures, at, now

    @property
    def quiet(self) -> bool:
        return time.monotonic() - self._clock > _QUIET_SECONDS

    @property
    def busy(self) -> dict[str, float]:
        measured = dict(self.measures.busy) if self.measures else {}
        return dict.fromkeys(measured, 0.0) if self.quiet else measured

    def status(self) -> QueryStatus:
        watermark = to_datetime(self.progress.watermark.value)
        if self.report is None or self.measures is None or self.committed_at is None:
            return QueryStatus(id=self.id, epoch=self._last_written(), watermark=watermark)
        return QueryStatus(
            id=self.id,
            epoch=self._last_written() if self.stopped else self.report.epoch,
            watermark=watermark,
            duration_ms=self.report.duration_ms,
            events=self.report.events,
            committed_at=self.committed_at,
            checkpoint=CheckpointStatus(
                epoch=self.report.epoch,
                at=self.committed_at,
                duration_ms=self.measures.checkpoint_ms,
                bytes=self._bytes,
            ),
        )

    def _last_written(self) -> int | None:
        last = self.progress.last_epoch
        return None if last is None else last + self.progress.shift

    def sources(self) -> dict[str, SourceStatus]:
        offsets = self.measures.offsets if self.measures else {}
        return {
            id_: _with_offsets(status, offsets.get(id_, {})) for id_, status in self.progress.source_status().items()
        }


@dataclass
class StatusBoard:
    plan: ExecutionPlan
    queries: list[QueryBoard]

    def committed(self, id_: str, report: EpochCommitted, measures: EpochMeasures) -> None:
        """One query has committed an epoch; `report` holds the totals of that query alone."""
        next(query for query in self.queries if query.id == id_).committed(report, measures)

    def stopped(self) -> None:
        """All queries have stopped at the end of their epochs."""
        for query in self.queries:
            query.stopped = True

    def status(self, state: Literal["STARTING", "RUNNING", "STOPPING"], total: Accounting) -> DriverStatus:
        lags = [query.measures.lag for query in self.queries if query.measures and query.measures.lag is not None]
        parallelism = [found for query in self.queries if (found := query.checkpoint.known_parallelism) is not None]
        return DriverStatus(
            state=state,
            at=datetime.now(UTC),
            parallelism=max(parallelism, default=None),
            watermark=to_datetime(smallest_watermark(query.progress.watermark.value for query in self.queries)),
            queries=tuple(query.status() for query in self.queries),
            sources=self._sources(),
            operators=tuple(self._operators(total)),
            sinks=tuple(self._sinks(total)),
            lag_events=max(lags, default=None),
            slowest_step=self._slowest_step(),
            total=total,
            open_windows=self._open_windows(),
        )

    def _sources(self) -> dict[str, SourceStatus]:
        """A source that several queries read is shown as the one sees it that is farthest behind."""
        found: dict[str, SourceStatus] = {}
        ahead_first = sorted(self.queries, key=lambda query: query.progress.watermark.value or -1, reverse=True)
        for query in ahead_first:
            found.update(query.sources())
        return {id_: found[id_] for id_ in self.plan.sources if id_ in found}

    def _operators(self, total: Accounting) -> Iterable[OperatorStatus]:
        rates = {id_: rate for query in self.queries if not query.quiet for id_, rate in query.rates.items()}
        busy = self._busy()
        sizes = {id_: size for query in self.queries if query.measures for id_, size in query.measures.state.items()}
        for id_, operator in self.plan.operators.items():
            counts, size = total.operators.get(id_, OperatorCounts()), sizes.get(id_)
            yield OperatorStatus(
                id=id_,
                type=operator.type,
                rows_in=counts.rows_in,
                rows_out=counts.rows_out,
                events_per_second=round(rates.get(id_, 0.0), 3),
                late=counts.late,
                state_rows=size.rows if size else None,
                state_bytes=size.bytes if size else None,
                busy=busy.get(id_),
            )

    def _busy(self) -> dict[str, float]:
        """An operator that several queries run takes its time in each of them."""
        shares: dict[str, float] = {}
        for query in self.queries:
            for id_, share in query.busy.items():
                shares[id_] = min(1.0, round(shares.get(id_, 0.0) + share, 4))
        return shares

    def _sinks(self, total: Accounting) -> Iterable[SinkStatus]:
        epochs = {sink: epoch for query in self.queries for sink, epoch in query.progress.sink_epochs.items()}
        commits = {sink: commit for query in self.queries for sink, commit in query.sink_commits.items()}
        for id_ in self.plan.sinks:
            epoch, at = commits.get(id_, (epochs.get(id_), None))
            rows = total.sinks[id_].rows if id_ in total.sinks else 0
            yield SinkStatus(id=id_, committed_epoch=epoch, rows=rows, last_commit_at=at)

    def _slowest_step(self) -> str | None:
        reports = [query.report for query in self.queries if query.report]
        slowest = max(reports, key=lambda report: report.duration_ms, default=None)
        return slowest_step(slowest.duration_ms, slowest.sink_commit_ms, self._busy()) if slowest else None

    def _open_windows(self) -> dict[str, OpenWindows]:
        sizes = {id_: size for query in self.queries if query.measures for id_, size in query.measures.state.items()}
        windows = (id_ for id_, operator in self.plan.operators.items() if isinstance(operator, WindowPlan))
        return {id_: OpenWindows(rows=sizes[id_].rows) for id_ in windows if id_ in sizes}


def _rates(before: Accounting, after: Accounting, seconds: float) -> dict[str, float]:
    """Events a second of each source and operator that this query answers for, between two of its epochs."""
    ins = {id_: counts.events_in for id_, counts in after.sources.items()}
    ins |= {id_: counts.rows_in for id_, counts in after.operators.items()}
    was = {id_: counts.events_in for id_, counts in before.sources.items()}
    was |= {id_: counts.rows_in for id_, counts in before.operators.items()}
    return {id_: (count - was.get(id_, 0)) / seconds for id_, count in ins.items()}


def _with_offsets(status: SourceStatus, offsets: dict[int, PartitionOffsets]) -> SourceStatus:
    partitions = tuple(
        partition.model_copy(update={"offset": known.offset, "end_offset": known.end, "lag": known.lag})
        if (known := offsets.get(partition.partition))
        else partition
        for partition in status.partitions
    )
    return status.model_copy(update={"partitions": partitions})
