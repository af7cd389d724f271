"""The outer wall: every request passes here before anything else looks at it.

Host and Origin keep web pages of other sites out, which a browser would let talk to a server on loopback. Bodies are
JSON or YAML and of limited size, and nobody may ask too often.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemark.control_plane.api.errors import answer_to, envelope
from tidemark.control_plane.api.limits import Limiter
from tidemark.errors import Forbidden, TooManyRequests

MEDIA_TYPES = ("application/json", "application/yaml", "application/x-yaml", "text/yaml")
LARGEST_BODY = 1024 * 1024
LARGEST_DRIVER_BODY = 16 * 1024 * 1024
INTERNAL = "/internal/"
UNLIMITED = ("/healthz", "/readyz")
WRITES = ("POST", "PUT", "PATCH")


class Guard:
    """`hosts` are the names by which clients may call this server, without ports."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], limiter: Limiter) -> None:
        self._app = app
        self._limiter = limiter
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._too_often(scope, headers) or self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _counting(receive, _limit(scope)), send)

    def _too_often(self, scope: Scope, headers: Headers) -> Response | None:
        if scope["path"] in UNLIMITED or scope["path"].startswith(INTERNAL):
            return None
        address, _ = scope["client"] or ("", 0)
        seconds = self._limiter.wait(bearer(headers), address)
        if not seconds:
            return None
        error = TooManyRequests("too many requests", hint="ask less often; the setting is requests_per_second")
        return answer_to(error, {"Retry-After": str(math.ceil(seconds))})

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if _name_of(host) not in self._hosts:
            return answer_to(Forbidden("this Host is not one of the server's", hint="see the setting allowed_hosts"))
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return answer_to(Forbidden("requests from other origins are refused"))
        return _bad_body(scope, headers)


def _counting(receive: Receive, limit: int) -> Callable[[], Awaitable[Message]]:
    """Stops a body that came without its length as soon as it is too large."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413, f"a body has at most {limit} bytes")
        return message

    return counted


def _bad_body(scope: Scope, headers: Headers) -> Response | None:
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > _limit(scope):
        return _too_large(_limit(scope))
    has_body = length != "0" or "transfer-encoding" in headers
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    if scope["method"] in WRITES and has_body and media_type not in MEDIA_TYPES:
        return envelope(415, "unsupported_media", "a body is JSON or YAML", f"say one of {', '.join(MEDIA_TYPES)}")
    return None


def _too_large(limit: int) -> Response:
    return envelope(413, "too_large", f"a body has at most {limit} bytes", "split the job, or shorten its tests")


def _limit(scope: Scope) -> int:
    return LARGEST_DRIVER_BODY if scope["path"].startswith(INTERNAL) else LARGEST_BODY


def bearer(headers: Headers) -> str | None:
    """The token that a request carries."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None


def _name_of(host: str) -> str:
    """Without the port; `[::1]` keeps its brackets."""
    return host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
