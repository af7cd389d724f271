"""The calls about jobs: submit, list, show, stop, restart, cancel, rescale, upgrade."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

from fastapi import Header, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.compiler.plan.explain import explain_json
from tidemark.control_plane.api import models
from tidemark.control_plane.api.pages import Cursor, Limit, cursor, place_of_job
from tidemark.control_plane.api.services import Actor, Here, Services
from tidemark.control_plane.api.views import job_views
from tidemark.control_plane.jobs import upgrade
from tidemark.control_plane.jobs.lifecycle import TERMINAL, State
from tidemark.control_plane.jobs.manager import Submission
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.records import JobRecord
from tidemark.errors import RequestRefused

# Made in a few milliseconds, for which the server's loop can wait.
_SHORT_PAGE = 50
Flag = Annotated[bool, Query()]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


async def submit_job(
    request: Request,
    services: Here,
    actor: Actor,
    start: Flag = True,
    dry_run: Flag = False,
    from_savepoint: Annotated[str | None, Query(max_length=200)] = None,
    accept: Annotated[list[str] | None, Query(description="`repeat_output`: rows may be written again.")] = None,
    idempotency_key: Key = None,
) -> Response:
    """Submit a job. With `dry_run` nothing is made, and the plan is shown."""
    body = await request.body()
    submission = Submission(
        definition=_text(body),
        start=start,
        key=None if idempotency_key is None else f"{actor}/{idempotency_key}",
        request_hash=hashlib.sha256(f"{request.url.query}\n".encode() + body).hexdigest(),
    )
    if dry_run:
        return await run_in_threadpool(_dry_run, services, submission.definition)
    return await run_in_threadpool(_submit, services, submission, from_savepoint, frozenset(accept or ()), actor)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestRefused(f"the body is not UTF-8 text (byte {error.start})") from None


def _dry_run(services: Services, definition: str) -> Response:
    compiled = services.manager.compile(definition)
    dry = models.DryRun(
        name=compiled.plan.job, plan=explain_json(compiled.plan), warnings=_diagnostics(compiled.warnings)
    )
    return JSONResponse(dry.model_dump(mode="json"))


def _submit(
    services: Services, submission: Submission, from_savepoint: str | None, accept: frozenset[str], actor: str
) -> Response:
    if from_savepoint is not None:
        submission = services.savepoints.restored(submission, from_savepoint, accept)
    job, warnings = services.manager.submit(submission, actor)
    shown = _view(services, job)
    answer = models.SubmittedJob(**dict(shown), warnings=_diagnostics(warnings))
    return JSONResponse(answer.model_dump(mode="json"), status_code=201, headers={"Location": f"/jobs/{job.job_id}"})


def _diagnostics(found: Sequence[Diagnostic]) -> list[models.DiagnosticModel]:
    return [models.DiagnosticModel.model_validate(each) for each in found]


def _view(services: Services, job: JobRecord) -> models.Job:
    with services.plane.database.reading() as connection:
        return job_views(services.plane, connection, [job])[0]


def _written(answer: models.Model) -> Response:
    """As it is: FastAPI would check once more what was just made, in a thread of its own."""
    return Response(answer.model_dump_json(), media_type="application/json")


async def list_jobs(
    services: Here,
    state: Annotated[list[State] | None, Query(description="Only jobs in one of these states.")] = None,
    limit: Limit = 50,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
) -> Response:
    """The jobs, the newest first."""
    if limit <= _SHORT_PAGE:
        return _page(services, state or (), limit, cursor_)
    return await run_in_threadpool(_page, services, state or (), limit, cursor_)


def _page(services: Services, states: Sequence[State], limit: int, place: str | None) -> Response:
    with services.plane.database.reading() as connection:
        found = store.list_jobs(connection, states, limit + 1, place_of_job(place))
        views = job_views(services.plane, connection, found[:limit])
    last = found[:limit][-1:]
    following = cursor(last[0].created_at.isoformat(), last[0].job_id) if len(found) > limit else None
    return _written(models.Jobs(jobs=views, next_cursor=following))


async def show_job(services: Here, job_id: str) -> Response:
    """One job, by its id or, for the newest of that name, by its name."""
    with services.plane.database.reading() as connection:
        (shown,) = job_views(services.plane, connection, [store.get_job(connection, job_id)])
    return _written(shown)


def stop_job(services: Here, actor: Actor, job_id: str) -> models.Job:
    """Stop at the end of the epoch; the state is kept."""
    return _view(services, services.manager.stop(job_id, actor))


def restart_job(services: Here, actor: Actor, job_id: str) -> models.Job:
    """Start a job that was stopped or has failed, from its last committed epoch; one that runs is stopped first."""
    return _view(services, services.manager.restart(job_id, actor))


def rescale_job(services: Here, actor: Actor, job_id: str, change: models.Rescale) -> models.Job:
    """Spread the state over another number of key groups: stop, repartition, start."""
    return _view(services, services.manager.rescale(job_id, change.parallelism, actor))


def cancel_job(services: Here, actor: Actor, job_id: str, savepoint: Flag = False, purge: Flag = False) -> Response:
    """Cancel a job, after a final savepoint if asked. `purge` forgets one that has ended."""
    with services.plane.database.reading() as connection:
        job = store.get_job(connection, job_id)
    if purge:
        services.manager.purge(job.job_id, actor)
        return Response(status_code=204)
    if job.state in TERMINAL:
        return Response(status_code=204)
    answer = models.CancelAccepted(job_id=job.job_id, state=job.state)
    if savepoint:
        made = services.savepoints.take(job.job_id, actor, then_cancel=True)
        answer.savepoint_id, answer.status_url = made.savepoint_id, f"/savepoints/{made.savepoint_id}"
    else:
        answer.state = services.manager.cancel(job.job_id, actor).state
    return JSONResponse(answer.model_dump(mode="json"), status_code=202)


async def upgrade_job(
    request: Request,
    services: Here,
    actor: Actor,
    name: str,
    dry_run: Flag = False,
    accept: Annotated[list[str] | None, Query(description="Queries and operators whose state may be lost.")] = None,
) -> Response:
    """Change the definition of a job; its state is kept where its shape allows it."""
    definition = _text(await request.body())
    return await run_in_threadpool(_upgrade, services, actor, name, definition, dry_run, frozenset(accept or ()))


def _upgrade(
    services: Services, actor: str, name: str, definition: str, dry_run: bool, accept: frozenset[str]
) -> Response:
    if dry_run:
        job, _, verdicts = services.manager.verdict(name, definition)
    else:
        job, verdicts = services.manager.upgrade(name, definition, accept, actor)
    answer = models.Upgrade(job_id=job.job_id, state=job.state, dry_run=dry_run, queries=_verdicts(verdicts))
    return JSONResponse(answer.model_dump(mode="json"), status_code=200 if dry_run else 202)


def _verdicts(verdicts: Sequence[upgrade.QueryVerdict]) -> list[models.QueryVerdict]:
    return [models.QueryVerdict.model_validate(each) for each in verdicts]
