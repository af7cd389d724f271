"""The calls about the server itself: metrics, health, the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import JSONResponse, Response

from tidemark.control_plane.api import models
from tidemark.control_plane.api.errors import envelope
from tidemark.control_plane.api.pages import Cursor, Limit, cursor, place_of_row
from tidemark.control_plane.api.services import Here
from tidemark.control_plane.api.views import sample_of
from tidemark.control_plane.jobs.lifecycle import State
from tidemark.control_plane.metrics import CONTENT_TYPE, JobCollector, render
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.access import list_changes


def show_metrics(services: Here) -> Response:
    """Everything there is to know for Prometheus."""
    plane = services.plane
    with plane.database.reading() as connection:
        newest = {job.name: job for job in reversed(store.list_jobs(connection))}
    collector = JobCollector(lambda: (sample_of(plane, job) for job in newest.values()), State, plane.now)
    return Response(render(plane.metrics, collector), media_type=CONTENT_TYPE)


def show_health() -> models.Health:
    """Whether the process answers."""
    return models.Health()


def show_readiness(services: Here) -> JSONResponse:
    """Whether it can do its work: the store answers and the reconcile loop runs."""
    with services.plane.database.reading() as connection:
        store.count_live(connection)
    if not services.reconciler.is_alive:
        return envelope(503, "not_ready", "the reconcile loop does not run", "restart the server")
    return JSONResponse(models.Health().model_dump())


def show_audit(
    services: Here, limit: Limit = 100, cursor_: Annotated[Cursor, Query(alias="cursor")] = None
) -> models.Audit:
    """Who changed what, the newest first."""
    with services.plane.database.reading() as connection:
        found = list_changes(connection, limit + 1, place_of_row(cursor_))
    page = found[:limit]
    following = cursor(page[-1].audit_id) if len(found) > limit else None
    return models.Audit(entries=[models.AuditItem.model_validate(each) for each in page], next_cursor=following)
