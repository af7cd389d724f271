"""Random requests made from the OpenAPI document: no server error, no answer that the document does not have."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from control_plane.serving import Server
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, checks

from tidemark.control_plane.api.routes import ROUTES, Route

PUBLIC = [route for route in ROUTES if not route.internal]
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
QUICK = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def document(server: Server) -> schemathesis.BaseSchema:
    for name in ("job", "other"):
        server.wait_for_epoch(server.submit(name))
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


TAKING = [route for route in PUBLIC if 422 in route.refusals]


@pytest.mark.parametrize("route", PUBLIC, ids=[f"{route.method} {route.path}" for route in PUBLIC])
def test_good_requests_are_answered_as_the_document_says(document: schemathesis.BaseSchema, route: Route) -> None:
    hold(document, route, GenerationMode.POSITIVE)


@pytest.mark.parametrize("route", TAKING, ids=[f"{route.method} {route.path}" for route in TAKING])
def test_bad_requests_are_refused_as_the_document_says(document: schemathesis.BaseSchema, route: Route) -> None:
    hold(document, route, GenerationMode.NEGATIVE)


def hold(document: schemathesis.BaseSchema, route: Route, mode: GenerationMode) -> None:
    operation = document[route.path][route.method]

    @QUICK
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def holds(case: Case[Any], real: bool) -> None:
        if real and "job_id" in case.path_parameters:
            case.path_parameters["job_id"] = "job"
        case.validate_response(case.call(timeout=30), checks=CHECKS)

    holds()


def test_the_document_has_every_public_route(document: schemathesis.BaseSchema) -> None:
    described = {(method.upper(), path) for path, calls in document.raw_schema["paths"].items() for method in calls}
    assert described == {(route.method, route.path) for route in PUBLIC}
