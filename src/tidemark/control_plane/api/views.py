"""Jobs, savepoints and watermarks as the API shows them: the store's record joined with the driver's last status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.control_plane import alerts as alerting
from tidemark.control_plane import backpressure
from tidemark.control_plane.api import models
from tidemark.control_plane.jobs.lifecycle import State
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.metrics import JobSample
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.records import JobRecord, SavepointRecord
from tidemark.protocol.status import DriverStatus, QueryStatus

_SHOWN_ALIVE = (State.STARTING, State.RUNNING, State.RECOVERING, State.STOPPING, State.CANCELING)


def status_of(plane: Plane, job: JobRecord) -> DriverStatus | None:
    """What the driver said last, also in an earlier attempt or before a restart of the control plane."""
    seen = plane.observations.find(job.job_id)
    if seen is not None and seen.status is not None:
        return seen.status
    return None if job.status is None else DriverStatus.model_validate(job.status)


def trend_of(plane: Plane, job: JobRecord) -> backpressure.Trend | None:
    seen = plane.observations.find(job.job_id)
    history = tuple(seen.history) if seen is not None else ()
    return backpressure.trend(history) if history else None


def job_views(plane: Plane, connection: sa.Connection, jobs: Sequence[JobRecord]) -> list[models.Job]:
    shown = [job.job_id for job in jobs]
    restarts = store.count_recoveries(connection, shown, plane.now() - alerting.RESTARTS_WITHIN)
    return [job_view(plane, job, restarts.get(job.job_id, 0)) for job in jobs]


def job_view(plane: Plane, job: JobRecord, recent_restarts: int) -> models.Job:
    status = status_of(plane, job)
    fields: dict[str, Any] = {
        **{name: getattr(job, name) for name in _FROM_RECORD},
        "mode": job.plan["mode"],
        "parallelism": job.plan["parallelism"] or (status.parallelism if status else None),
        **_before_the_first_word(job.plan),
    }
    if status is not None:
        fields |= _from_status(status)
        fields |= _judged(plane, job, status, recent_restarts)
    return models.Job.model_validate(fields)


_FROM_RECORD = (
    "job_id",
    "name",
    "state",
    "desired_state",
    "since",
    "created_at",
    "attempt",
    "restarts",
    "last_error",
)


def _before_the_first_word(plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "sources": {id_: models.Source() for id_ in plan["sources"]},
        "operators": [models.Operator(id=id_, type=each["type"]) for id_, each in plan["operators"].items()],
        "sinks": [models.Sink(id=id_) for id_ in plan["sinks"]],
        "queries": [models.Query(id=query["id"]) for query in plan["queries"]],
    }


def _from_status(status: DriverStatus) -> dict[str, Any]:
    slowest = max(status.queries, key=_slowness, default=None)
    epoch = None
    if slowest is not None and slowest.epoch is not None:
        epoch = models.Epoch(id=slowest.epoch, duration_ms=slowest.duration_ms, events=slowest.events)
    return {
        "watermark": status.watermark,
        "sources": {id_: models.Source.model_validate(each) for id_, each in status.sources.items()},
        "operators": [models.Operator.model_validate(each) for each in status.operators],
        "sinks": [models.Sink.model_validate(each) for each in status.sinks],
        "queries": [models.Query.model_validate(each) for each in status.queries],
        "epoch": epoch,
        "checkpoint": slowest.checkpoint.model_dump() if slowest and slowest.checkpoint else None,
    }


def _slowness(query: QueryStatus) -> tuple[bool, int]:
    return (query.epoch is not None, query.duration_ms or 0)


def _judged(plane: Plane, job: JobRecord, status: DriverStatus, recent_restarts: int) -> dict[str, Any]:
    if job.state not in _SHOWN_ALIVE:
        return {}
    trend = trend_of(plane, job)
    pressure = backpressure.judge(status, trend)
    facts = alerting.Facts(job, sources_of(job), status, recent_restarts, plane.now())
    advice = backpressure.recommend(status, trend, pressure, job.plan["parallelism"])
    return {
        "backpressure": vars(pressure),
        "recommendation": None if advice is None else vars(advice),
        "alerts": [vars(alert) for alert in alerting.alerts(facts)],
    }


def sources_of(job: JobRecord) -> dict[str, SourcePlan]:
    """What an answer needs of a plan; to read all of it takes longer than the rest of the answer."""
    return {id_: SourcePlan.model_validate(source) for id_, source in job.plan["sources"].items()}


def sample_of(plane: Plane, job: JobRecord) -> JobSample:
    """The job for a scrape; figures of a driver that is gone are left out, since they would look like new ones."""
    alive = job.state in _SHOWN_ALIVE
    status = status_of(plane, job) if alive else None
    pressure = backpressure.judge(status, trend_of(plane, job)) if status else None
    return JobSample(
        name=job.name,
        state=job.state,
        restarts=job.restarts,
        sources=sources_of(job),
        status=status,
        lag_seconds=pressure.lag_seconds if pressure else None,
        backpressure=backpressure.LEVELS[pressure.level] if pressure else 0.0,
    )


def savepoint_view(record: SavepointRecord) -> models.Savepoint:
    summary = record.summary or {}
    queries = summary.get("queries", {})
    failure = None
    if record.failure is not None:
        at = record.completed_at or record.created_at
        failure = {**record.failure, "operator": record.failure.get("step"), "at": at}
    fields = {
        **vars(record),
        **{name: summary.get(name) for name in _SUMMARY},
        "offsets": {id_: query["offsets"] for id_, query in queries.items()} or None,
        "parallelism": max((query["parallelism"] or 0 for query in queries.values()), default=0) or None,
        "failure": failure,
    }
    return models.Savepoint.model_validate({name: fields.get(name) for name in models.Savepoint.model_fields})


_SUMMARY = ("epoch", "watermark", "bytes", "checksum")
