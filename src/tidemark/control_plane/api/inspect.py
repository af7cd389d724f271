"""The calls that look closer at a job: plan, history, log, watermark, keyed state."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from tidemark.compiler.plan.explain import explain_json
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.control_plane.api import models
from tidemark.control_plane.api.pages import Cursor, Limit, cursor, place_of_row
from tidemark.control_plane.api.services import Here, Services
from tidemark.control_plane.api.views import status_of
from tidemark.control_plane.jobs.attempts import directory_of
from tidemark.control_plane.jobs.lifecycle import State
from tidemark.control_plane.jobs.watermark import explain_watermark
from tidemark.control_plane.store import commands
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.records import CommandRecord, JobRecord
from tidemark.errors import Conflict, NotFound, RequestRefused, UsageError
from tidemark.protocol.status import DriverStatus

STATE_SECONDS = 20.0


def _job(services: Services, job_id: str) -> JobRecord:
    with services.plane.database.reading() as connection:
        return store.get_job(connection, job_id)


def show_plan(services: Here, job_id: str) -> JSONResponse:
    """The graph and how it is carried out; `$NAME` references are shown as such."""
    return JSONResponse(explain_json(ExecutionPlan.model_validate(_job(services, job_id).plan)))


def list_events(
    services: Here, job_id: str, limit: Limit = 100, cursor_: Annotated[Cursor, Query(alias="cursor")] = None
) -> models.Events:
    """The history of a job, the newest first: transitions with cause and duration, crashes, warnings, savepoints."""
    with services.plane.database.reading() as connection:
        job = store.get_job(connection, job_id)
        found = store.list_events(connection, job.job_id, limit + 1, place_of_row(cursor_))
    page = found[:limit]
    following = cursor(page[-1].event_id) if len(found) > limit else None
    return models.Events(events=[models.Event.model_validate(each) for each in page], next_cursor=following)


def show_logs(
    services: Here, job_id: str, tail: Annotated[int, Query(ge=1, le=10_000, description="How many lines.")] = 200
) -> models.LogLines:
    """The last lines of the driver's log."""
    log = directory_of(services.plane, _job(services, job_id)).log
    return models.LogLines(lines=last_lines(log, tail))


def last_lines(log: Path, count: int) -> list[str]:
    """Over the newest part of the log and, where that is short, the one before it."""
    lines: deque[str] = deque(maxlen=count)
    for part in (log.with_name(f"{log.name}.1"), log):
        if part.exists():
            with open(part, encoding="utf-8", errors="replace") as file:
                lines.extend(line.rstrip("\n") for line in file)
    return list(lines)


def show_watermark(services: Here, job_id: str) -> models.Watermark:
    """Why the watermark is where it is: what holds it, what would release it, which windows wait."""
    job = _job(services, job_id)
    status = status_of(services.plane, job) or DriverStatus(state="STARTING")
    chains = explain_watermark(ExecutionPlan.model_validate(job.plan), status)
    return models.Watermark(
        job_id=job.job_id,
        watermark=status.watermark,
        queries=[models.Chain.model_validate(chain) for chain in chains],
    )


async def show_state(
    services: Here,
    job_id: str,
    operator: str,
    key: Annotated[str, Query(max_length=10_000, description="JSON of the key columns, or the text of a single one.")],
) -> models.KeyedState:
    """Keyed state as of a committed epoch, answered by the driver."""
    job = await run_in_threadpool(_job, services, job_id)
    with services.plane.bell.listening(job.job_id) as bell:
        asked = await run_in_threadpool(_ask, services, job, operator, key)
        result = await _result(services, asked, bell)
    if not result["ok"]:
        raise _refusal(result["failure"])
    return models.KeyedState.model_validate(result["result"])


def _ask(services: Services, job: JobRecord, operator: str, key: str) -> CommandRecord:
    if operator not in job.plan["operators"]:
        names = ", ".join(job.plan["operators"])
        raise NotFound(f"job {job.name!r} has no operator {operator!r}", hint=f"there are {names}")
    with services.plane.database.writing() as connection:
        job = store.get_job(connection, job.job_id)
        if job.state != State.RUNNING:
            raise Conflict(f"job {job.name!r} is {job.state}", hint="only a running job can be asked for its state")
        asked = commands.add_command(connection, job, "state_get", services.plane.now(), operator=operator, key=key)
    services.plane.bell.ring(job.job_id)
    return asked


async def _result(services: Services, asked: CommandRecord, bell: asyncio.Event) -> dict[str, Any]:
    def look() -> CommandRecord | None:
        with services.plane.database.reading() as connection:
            return commands.get_command(connection, asked.job_id, asked.command_id)

    try:
        async with asyncio.timeout(STATE_SECONDS):
            while True:
                bell.clear()
                found = await run_in_threadpool(look)
                if found is not None and found.result is not None:
                    return found.result
                await bell.wait()
    except TimeoutError:
        raise Conflict(f"the driver did not answer within {STATE_SECONDS:g} s", hint="try again") from None


def _refusal(failure: dict[str, Any]) -> RequestRefused:
    kind = RequestRefused if failure["code"] == UsageError.code else Conflict
    return kind(failure["message"], hint=failure["hint"], step=failure["step"])
