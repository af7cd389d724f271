"""How a refusal becomes an answer: one envelope for all, with the status that goes with the kind of error."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.control_plane.api.models import DiagnosticModel, ErrorBody, ErrorEnvelope
from tidemark.errors import (
    AlreadyRunning,
    Conflict,
    DefinitionError,
    Forbidden,
    LimitReached,
    NotAvailable,
    NotFound,
    RequestRefused,
    SecretsExposed,
    StateFault,
    StateWouldBeLost,
    TidemarkError,
    TooManyRequests,
    Unauthenticated,
)

_LOG = logging.getLogger(__name__)

STATUS: tuple[tuple[type[TidemarkError], int], ...] = (
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (NotAvailable, 409),
    (LimitReached, 409),
    (TooManyRequests, 429),
    (StateWouldBeLost, 409),
    (AlreadyRunning, 409),
    (SecretsExposed, 409),
    (StateFault, 409),
    (DefinitionError, 422),
    (RequestRefused, 422),
    (TidemarkError, 500),
)

CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media"}


def envelope(
    status: int,
    code: str,
    message: str,
    hint: str | None = None,
    diagnostics: Sequence[Diagnostic] = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = ErrorBody(
        code=code,
        message=message,
        hint=hint,
        diagnostics=[DiagnosticModel.model_validate(each) for each in diagnostics] or None,
    )
    content = ErrorEnvelope(error=body).model_dump(mode="json", exclude_none=not diagnostics)
    return JSONResponse(content, status_code=status, headers=headers)


def answer_to(error: TidemarkError, headers: dict[str, str] | None = None) -> JSONResponse:
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    diagnostics = error.diagnostics if isinstance(error, DefinitionError) else ()
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    return envelope(status, error.code, error.message, error.hint, diagnostics, headers)


def add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(TidemarkError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TidemarkError)
    return answer_to(error)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = [
        Diagnostic("bad_value", str(each["msg"]), None, ".".join(map(str, each["loc"])), None, None)
        for each in error.errors()
    ]
    names = ", ".join(each.path for each in found)
    return envelope(422, "bad_request", f"the request is not valid: {names}", "see `diagnostics`", found)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = 422 if error.status_code == 400 else error.status_code  # FastAPI's word for a body that is no JSON
    code = CODES.get(status, "bad_request")
    message = f"{request.method} {request.url.path}: {error.detail}"
    return envelope(status, code, message, "/openapi.json lists all calls", headers=_headers(error))


def _headers(error: HTTPException) -> dict[str, str] | None:
    return dict(error.headers) if error.headers else None


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return envelope(500, "internal", "something went wrong in the control plane", "its log says more")
