"""The driver's calls to the control plane. A server that is away is no error: the caller tries again later."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from tidemark.protocol.control import CommandResult, Commands, Heartbeat, HeartbeatAnswer
from tidemark.protocol.message import Message
from tidemark.protocol.start import ControlEndpoint

_LOG = logging.getLogger(__name__)
_TIMEOUT = httpx.Timeout(10.0, connect=2.0)
Answer = TypeVar("Answer", bound=Message)


class ControlClient:
    """For one thread. The address is read again after every call that failed: a new server may have another port."""

    def __init__(self, endpoint: ControlEndpoint, attempt: int, transport: httpx.BaseTransport | None = None) -> None:
        self._path = f"/internal/jobs/{endpoint.job_id}/attempts/{attempt}"
        self._address_file = Path(endpoint.address_file)
        headers = {"Authorization": f"Bearer {endpoint.token}"}
        # Settings of the environment, such as a proxy, are not for calls to this machine.
        self._http = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False, transport=transport)
        self._url: str | None = None
        self._away = False

    def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatAnswer | None:
        return self._call(HeartbeatAnswer, "POST", "/heartbeat", content=heartbeat.model_dump_json())

    def commands(self, after: int, wait: float) -> Commands | None:
        """What was asked for after that id; the server answers when there is something, or after `wait` seconds."""
        timeout = httpx.Timeout(wait + 10.0, connect=2.0)
        return self._call(Commands, "GET", "/commands", params={"after": after, "wait": wait}, timeout=timeout)

    def result(self, result: CommandResult) -> bool:
        """Whether the server has taken it; also when it does not know the command any more."""
        response = self._request(
            "POST", f"/commands/{result.id}/result", content=result.model_dump_json(), headers=_JSON
        )
        return response is not None and (response.is_success or response.status_code in (404, 409, 410))

    def close(self) -> None:
        self._http.close()

    def _call(self, answer: type[Answer], method: str, path: str, **request: Any) -> Answer | None:
        response = self._request(method, path, headers=_JSON, **request)
        if response is None or not response.is_success:
            return None
        try:
            return answer.model_validate_json(response.content)
        except ValidationError as problem:
            _LOG.warning("the control plane answered what is not understood: %s", problem)
            return None

    def _request(self, method: str, path: str, **request: Any) -> httpx.Response | None:
        try:
            url = self._url or self._read_address()
            response = self._http.request(method, f"{url}{self._path}{path}", **request)
            if not response.is_success:
                self._note_away(f"it answered {response.status_code}")
                return response
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as problem:
            self._url = None
            self._note_away(str(problem) or type(problem).__name__)
            return None
        self._url, self._away = url, False
        return response

    def _read_address(self) -> str:
        """Raises OSError or ValueError while there is no server."""
        address = json.loads(self._address_file.read_text(encoding="utf-8"))
        if not isinstance(address, dict) or not isinstance(address.get("url"), str):
            raise ValueError(f"{self._address_file} holds no address")
        return str(address["url"]).rstrip("/")

    def _note_away(self, reason: str) -> None:
        if not self._away:
            _LOG.warning("the control plane cannot be reached: %s; the job goes on", reason)
        self._away = True


_JSON = {"Content-Type": "application/json"}
