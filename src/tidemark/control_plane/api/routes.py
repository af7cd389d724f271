"""Every call of the API, as one list: who may make it, what it answers, how it can be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidemark.control_plane.api import inspect, internal, jobs, models, operations, savepoints
from tidemark.control_plane.store.access import Role

EXAMPLE = """\
tidemark: 1
name: clicks-per-minute
sources:
  clicks:
    generator: {rate: 10, columns: {page: "concat('p', n % 3)"}}
    schema: {page: string}
operators:
  per_minute: {type: window, input: clicks, key: [page], window: {tumbling: 1m}, aggregate: {clicks: count()}}
sinks:
  out: {input: per_minute, sqlite: {path: clicks.db, table: clicks, key: [page, window_start]}}
"""
_DEFINITION = {
    "requestBody": {
        "required": True,
        "description": "A job definition. YAML and JSON say the same.",
        "content": {
            "application/yaml": {"schema": {"type": "string"}, "example": EXAMPLE},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}
_TEXT = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text format."}}


@dataclass(frozen=True)
class Route:
    """`role` is the least that may call it, None for everybody. `refusals` come on top of those all routes have."""

    method: str
    path: str
    call: Callable[..., Any]
    role: Role | None
    status: int = 200
    refusals: tuple[int, ...] = ()
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    internal: bool = False


def _json(status: int, model: type[models.Model], text: str) -> dict[int, dict[str, Any]]:
    return {status: {"model": model, "description": text}}


_LOCATION = {"headers": {"Location": {"schema": {"type": "string"}, "description": "Where the job is shown."}}}
_NOTHING = {204: {"description": "Done, and nothing to say."}}
_JOB = "/jobs/{job_id}"
_ATTEMPT = "/internal/jobs/{job_id}/attempts/{attempt}"

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/jobs",
        jobs.submit_job,
        Role.OPERATOR,
        201,
        (404, 409, 422),
        {
            201: {"model": models.SubmittedJob, "description": "The new job.", **_LOCATION},
            **_json(200, models.DryRun, "With `dry_run`: the definition is sound, and this is its plan."),
        },
        _DEFINITION,
    ),
    Route("GET", "/jobs", jobs.list_jobs, Role.VIEWER, 200, (422,), _json(200, models.Jobs, "A page of jobs.")),
    Route("GET", _JOB, jobs.show_job, Role.VIEWER, 200, (404,), _json(200, models.Job, "The job.")),
    Route(
        "PUT",
        "/jobs/{name}",
        jobs.upgrade_job,
        Role.OPERATOR,
        202,
        (404, 409, 422),
        {
            **_json(202, models.Upgrade, "The job is being upgraded."),
            **_json(200, models.Upgrade, "With `dry_run`: what the upgrade would mean."),
        },
        _DEFINITION,
    ),
    Route("PATCH", _JOB, jobs.rescale_job, Role.OPERATOR, 202, (404, 409, 422)),
    Route(
        "DELETE",
        _JOB,
        jobs.cancel_job,
        Role.OPERATOR,
        202,
        (404, 409, 422),
        {**_json(202, models.CancelAccepted, "The job is being canceled."), **_NOTHING},
    ),
    Route("POST", f"{_JOB}/stop", jobs.stop_job, Role.OPERATOR, 202, (404, 409)),
    Route("POST", f"{_JOB}/restart", jobs.restart_job, Role.OPERATOR, 202, (404, 409)),
    Route("POST", f"{_JOB}/savepoint", savepoints.take_savepoint, Role.OPERATOR, 202, (404, 409)),
    Route("GET", f"{_JOB}/savepoints", savepoints.list_savepoints_of_job, Role.VIEWER, 200, (404,)),
    Route("GET", f"{_JOB}/watermark", inspect.show_watermark, Role.VIEWER, 200, (404,)),
    Route(
        "GET",
        f"{_JOB}/plan",
        inspect.show_plan,
        Role.VIEWER,
        200,
        (404,),
        {200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The plan."}},
    ),
    Route("GET", f"{_JOB}/events", inspect.list_events, Role.VIEWER, 200, (404, 422)),
    Route("GET", f"{_JOB}/logs", inspect.show_logs, Role.VIEWER, 200, (404, 422)),
    Route("GET", f"{_JOB}/state/{{operator}}", inspect.show_state, Role.VIEWER, 200, (404, 409, 422)),
    Route("GET", "/savepoints", savepoints.list_savepoints, Role.VIEWER),
    Route("GET", "/savepoints/{savepoint_id}", savepoints.show_savepoint, Role.VIEWER, 200, (404,)),
    Route("DELETE", "/savepoints/{savepoint_id}", savepoints.delete_savepoint, Role.ADMIN, 204, (404, 409), _NOTHING),
    Route("GET", "/audit", operations.show_audit, Role.ADMIN, 200, (422,)),
    Route("GET", "/metrics", operations.show_metrics, Role.VIEWER, 200, (), _TEXT),
    Route("GET", "/healthz", operations.show_health, None),
    Route("GET", "/readyz", operations.show_readiness, None, 200, (503,), _json(200, models.Health, "It is.")),
    Route("POST", f"{_ATTEMPT}/heartbeat", internal.take_heartbeat, None, internal=True),
    Route("GET", f"{_ATTEMPT}/commands", internal.wait_for_commands, None, internal=True),
    Route("POST", f"{_ATTEMPT}/commands/{{command_id}}/result", internal.take_result, None, 204, internal=True),
)
