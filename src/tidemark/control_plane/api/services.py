"""What the routes work with, and who is calling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from tidemark.control_plane.api.guard import bearer
from tidemark.control_plane.api.limits import Limiter
from tidemark.control_plane.jobs.drivers import Drivers
from tidemark.control_plane.jobs.manager import Manager
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.jobs.reconcile import Reconciler
from tidemark.control_plane.savepoints.service import Savepoints
from tidemark.control_plane.store.access import Role, find_token, list_tokens
from tidemark.control_plane.store.records import TokenRecord
from tidemark.errors import Forbidden, Unauthenticated

LOCAL = "local"
TOKEN_HINT = "send `Authorization: Bearer TOKEN`; `tidemark tokens create` makes one"


@dataclass(frozen=True)
class Services:
    plane: Plane
    manager: Manager
    savepoints: Savepoints
    drivers: Drivers
    reconciler: Reconciler
    limiter: Limiter

    @classmethod
    def of(cls, plane: Plane) -> Services:
        limiter = Limiter(plane.settings.requests_per_second, plane.monotonic)
        return cls(plane, Manager(plane), Savepoints(plane), Drivers(plane), Reconciler(plane), limiter)


async def _services(request: Request) -> Services:
    """Asynchronous, as `_actor`: FastAPI would give a plain function a thread, and that one waits for its turn."""
    services: Services = request.app.state.services
    return services


async def _actor(request: Request) -> str:
    actor: str = request.state.actor
    return actor


Here = Annotated[Services, Depends(_services)]
Actor = Annotated[str, Depends(_actor)]


def needs(role: Role) -> Callable[..., Awaitable[None]]:
    """Lets those pass whose token has at least this role. Without any token in the store, whoever can reach us may.

    Asynchronous though it reads the store, as the calls that show jobs: such a read takes a millisecond and waits for
    no writer, and a thread on a busy machine waits longer than that for its turn.
    """

    async def check(request: Request, services: Here) -> None:
        token = bearer(request.headers)
        known = identify(services.plane, token, role)
        request.state.actor = LOCAL if known is None else known.name
        if known is not None and token is not None:
            services.limiter.verified(token, known.token_id)

    return check


def identify(plane: Plane, token: str | None, role: Role) -> TokenRecord | None:
    """Whose token it is; None while there are no tokens. Raises Unauthenticated or Forbidden."""
    with plane.database.reading() as connection:
        tokens = list_tokens(connection)
    if not tokens:
        return None
    if token is None:
        raise Unauthenticated("this server wants a token", hint=TOKEN_HINT)
    known = find_token(tokens, token, plane.now())
    if known is None:
        raise Unauthenticated("the token is unknown or expired", hint=TOKEN_HINT)
    if not Role(known.role).includes(role):
        raise Forbidden(f"this needs the role {role}, and the token has the role {known.role}")
    return known
