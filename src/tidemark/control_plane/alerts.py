"""What somebody should look at, from the state of a job and its driver. `monitoring/` has the same for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.control_plane.store.records import JobRecord
from tidemark.protocol.status import DriverStatus

NO_EPOCH = timedelta(minutes=5)
RESTARTS = 3
RESTARTS_WITHIN = timedelta(minutes=10)
ERROR_SHARE = 0.05
LAG_FOR = timedelta(minutes=1)


@dataclass(frozen=True)
class Alert:
    name: str
    severity: str
    message: str
    step: str | None = None


@dataclass(frozen=True)
class Facts:
    job: JobRecord
    sources: Mapping[str, SourcePlan]
    status: DriverStatus
    recent_restarts: int
    now: datetime


def alerts(facts: Facts) -> list[Alert]:
    return [alert for check in CHECKS for alert in check(facts)]


def _watermark_lag(facts: Facts) -> Iterator[Alert]:
    """A minute over what the source's delay and idle timeout explain: the watermark does not move by itself."""
    for id_, source in facts.status.sources.items():
        if source.watermark is None or source.idle or id_ not in facts.sources:
            continue
        policy = facts.sources[id_].watermark
        allowed = timedelta(milliseconds=policy.delay_ms + policy.idle_timeout_ms)
        if facts.now - source.watermark > allowed + LAG_FOR:
            behind = (facts.now - source.watermark).total_seconds()
            yield Alert("watermark_lag", "warning", f"the watermark of {id_} is {behind:.0f} s behind the clock", id_)


def _no_epoch(facts: Facts) -> Iterator[Alert]:
    if not facts.status.lag_events:
        return
    for query in facts.status.queries:
        since = query.committed_at or facts.job.since
        if facts.now - since > NO_EPOCH:
            minutes = (facts.now - since).total_seconds() / 60
            yield Alert(
                "no_committed_epoch",
                "critical",
                f"query {query.id} has committed no epoch for {minutes:.0f} minutes while input waits",
                query.id,
            )


def _restarts(facts: Facts) -> Iterator[Alert]:
    if facts.recent_restarts >= RESTARTS:
        minutes = RESTARTS_WITHIN.total_seconds() / 60
        yield Alert("restarts", "critical", f"{facts.recent_restarts} restarts within {minutes:.0f} minutes")


def _errors(facts: Facts) -> Iterator[Alert]:
    for id_, counts in facts.status.total.sources.items():
        source = facts.sources.get(id_)
        limit = ERROR_SHARE if source is None or source.max_error_rate is None else source.max_error_rate
        if counts.events_in and counts.errors / counts.events_in > limit:
            share = counts.errors / counts.events_in
            yield Alert(
                "error_share", "warning", f"{share:.1%} of the records of {id_} are bad (limit {limit:.1%})", id_
            )


def _idle(facts: Facts) -> Iterator[Alert]:
    for id_, source in facts.status.sources.items():
        idle = [str(partition.partition) for partition in source.partitions if partition.idle]
        if idle:
            yield Alert("partition_idle", "info", f"idle partitions of {id_}: {', '.join(idle)}", id_)


CHECKS: tuple[Callable[[Facts], Iterator[Alert]], ...] = (_watermark_lag, _no_epoch, _restarts, _errors, _idle)
