"""The calls that drivers make. Each carries the token of its job and attempt; nobody else has one."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.concurrency import run_in_threadpool

from tidemark.control_plane.api.guard import bearer
from tidemark.control_plane.api.services import Here
from tidemark.errors import Forbidden, RequestRefused
from tidemark.protocol.control import CommandResult, Commands, Heartbeat, HeartbeatAnswer

LONGEST_WAIT = 60.0
Attempt = Annotated[int, Path(ge=1, le=2**31)]
CommandId = Annotated[int, Path(ge=1, le=2**31)]


def _token(request: Request) -> str:
    token = bearer(request.headers)
    if token is None:
        raise Forbidden("a driver says the token of its attempt")
    return token


def take_heartbeat(request: Request, services: Here, job_id: str, attempt: Attempt, beat: Heartbeat) -> HeartbeatAnswer:
    """What the driver has to say."""
    return services.drivers.heartbeat(job_id, attempt, _token(request), beat)


async def wait_for_commands(
    request: Request,
    services: Here,
    job_id: str,
    attempt: Attempt,
    after: Annotated[int, Query(ge=0, le=2**31)] = 0,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 20.0,
) -> Commands:
    """What the driver is asked to do: at once when there is something, else when there is, or empty in the end."""
    token, clock = _token(request), asyncio.get_running_loop().time
    deadline = clock() + wait
    with services.plane.bell.listening(job_id) as bell:
        while True:
            bell.clear()
            found = await run_in_threadpool(services.drivers.commands, job_id, attempt, token, after)
            if found.commands or clock() >= deadline or services.plane.bell.closed:
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await bell.wait()


def take_result(
    request: Request, services: Here, job_id: str, attempt: Attempt, command_id: CommandId, result: CommandResult
) -> None:
    """What became of a command."""
    if result.id != command_id:
        raise RequestRefused(f"this is the result of command {result.id}, not of {command_id}")
    services.drivers.result(job_id, attempt, _token(request), result)
