"""Puts the API together: the list of routes, the error envelope and the guard in front."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import Depends, FastAPI
from starlette.types import ASGIApp

from tidemark.control_plane.api.errors import add_handlers
from tidemark.control_plane.api.guard import UNLIMITED, WRITES, Guard
from tidemark.control_plane.api.models import ErrorEnvelope
from tidemark.control_plane.api.routes import ROUTES, Route
from tidemark.control_plane.api.services import Services, needs

THREADS = 64
REFUSALS = {
    401: "A token is wanted, or this one is unknown or expired.",
    403: "The token's role, the Host or the Origin does not allow it.",
    404: "There is no such thing.",
    409: "Not in this state of the job.",
    413: "The body is too large.",
    415: "The body is neither JSON nor YAML.",
    422: "The request, or the definition in it, is not valid.",
    429: "More requests than this client may make in a second.",
    503: "Not ready.",
}
RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "After so many seconds."}}


def make_app(services: Services, hosts: tuple[str, ...]) -> ASGIApp:
    app = FastAPI(
        title="Tidemark",
        version=version("tidemark"),
        description="Submit, watch, savepoint and recover jobs.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        separate_input_output_schemas=False,
    )
    app.state.services = services
    add_handlers(app)
    for route in ROUTES:
        _add(app, route)
    return Guard(app, hosts, services.limiter)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The reconcile loop runs as long as the server does; the drivers run on."""
    services: Services = app.state.services
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    services.reconciler.start()
    try:
        yield
    finally:
        services.reconciler.stop()


def _add(app: FastAPI, route: Route) -> None:
    app.add_api_route(
        route.path,
        route.call,
        methods=[route.method],
        status_code=route.status,
        dependencies=[Depends(needs(route.role))] if route.role else [],
        responses=_answers(route),
        openapi_extra=route.extra or None,
        include_in_schema=not route.internal,
        response_model_exclude_none=False,
        operation_id=route.call.__name__,
    )


def _answers(route: Route) -> dict[int | str, dict[str, Any]]:
    statuses = {403, *route.refusals}
    if route.method in WRITES:
        statuses |= {413, 415}
    if route.role:
        statuses.add(401)
    if route.path not in UNLIMITED and not route.internal:
        statuses.add(429)
    if "{" in route.path:
        statuses.add(422)
    answers: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorEnvelope, "description": REFUSALS[status]} for status in sorted(statuses)
    }
    if 429 in answers:
        answers[429]["headers"] = RETRY_AFTER
    answers |= dict(route.answers.items())
    return answers
