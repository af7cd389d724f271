"""The control plane as the command line sees it: finds the server, calls it, and turns refusals into errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.errors import DefinitionError, RequestRefused, ServerUnreachable, TidemarkError
from tidemark.settings import Settings, load_settings

ADDRESS = "server.json"
DEFAULT = "http://127.0.0.1:8620"
_SECONDS = 30.0


class Client:
    """One call after the other; every answer is JSON or nothing."""

    def __init__(self, settings: Settings) -> None:
        self.url = address(settings)
        token = settings.token.get_secret_value() if settings.token else None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=_SECONDS, trust_env=False)

    @classmethod
    def here(cls) -> Client:
        return cls(load_settings(Path.cwd()))

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, query=query)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        definition: str | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer, None for an empty one. Raises what the server refused, or ServerUnreachable."""
        sent = dict(headers or {})
        if definition is not None:
            sent["Content-Type"] = "application/yaml"
        known = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            answer = self._http.request(method, path, params=known, content=definition, json=body, headers=sent)
        except httpx.HTTPError as error:
            raise ServerUnreachable(
                f"the server at {self.url} does not answer: {error}",
                hint="start one with `tidemark server`, or set TIDEMARK_SERVER to its address",
            ) from None
        if answer.is_error:
            raise _refusal(answer)
        return answer.json() if answer.content else None


def address(settings: Settings) -> str:
    """Where the server is: as set, else as the one of this home wrote down, else the usual place."""
    if settings.server is not None:
        return settings.server.rstrip("/")
    try:
        return str(json.loads((settings.home / ADDRESS).read_bytes())["url"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return DEFAULT


def _refusal(answer: httpx.Response) -> TidemarkError:
    try:
        error = answer.json()["error"]
        code, message, hint = error["code"], error["message"], error.get("hint")
    except (ValueError, KeyError, TypeError):
        return ServerUnreachable(f"{answer.url} answered {answer.status_code}, and not as a Tidemark server does")
    found = error.get("diagnostics")
    if found and code == DefinitionError.code:
        return DefinitionError([Diagnostic(**{name: each.get(name) for name in _PLACE}) for each in found])
    return _known(code)(message, hint=hint)


_PLACE = ("code", "message", "hint", "path", "line", "column")


def _known(code: str) -> type[TidemarkError]:
    waiting: list[type[TidemarkError]] = [RequestRefused]
    while waiting:
        kind = waiting.pop()
        if kind.code == code:
            return kind
        waiting.extend(kind.__subclasses__())
    return RequestRefused
