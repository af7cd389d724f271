"""What the routes work with, and who is calling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from tidemark.control_plane.jobs.drivers import Drivers
from tidemark.control_plane.jobs.manager import Manager
from tidemark.control_plane.jobs.plane import Plane
from tidemark.control_plane.jobs.reconcile import Reconciler
from tidemark.control_plane.savepoints.service import Savepoints
from tidemark.control_plane.store.access import Role, find_token, list_tokens
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

    @classmethod
    def of(cls, plane: Plane) -> Services:
        return cls(plane, Manager(plane), Savepoints(plane), Drivers(plane), Reconciler(plane))


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _actor(request: Request) -> str:
    actor: str = request.state.actor
    return actor


Here = Annotated[Services, Depends(_services)]
Actor = Annotated[str, Depends(_actor)]


def needs(role: Role) -> Callable[..., None]:
    """Lets those pass whose token has at least this role. Without any token in the store, whoever can reach us may."""

    def check(request: Request, services: Here) -> None:
        request.state.actor = identify(services.plane, bearer(request), role)

    return check


def identify(plane: Plane, token: str | None, role: Role) -> str:
    """The name to write into the audit log. Raises Unauthenticated or Forbidden."""
    with plane.database.reading() as connection:
        if not list_tokens(connection):
            return LOCAL
        if token is None:
            raise Unauthenticated("this server wants a token", hint=TOKEN_HINT)
        known = find_token(connection, token, plane.now())
    if known is None:
        raise Unauthenticated("the token is unknown or expired", hint=TOKEN_HINT)
    if not Role(known.role).includes(role):
        raise Forbidden(f"this needs the role {role}, and the token has the role {known.role}")
    return known.name


def bearer(request: Request) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None
