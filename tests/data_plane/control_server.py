"""A control plane that does as a test says: the internal calls of a driver, over real HTTP on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.waiting import wait_until

from tidemark.protocol.control import CommandResult, Commands, Heartbeat, HeartbeatAnswer, StateGet, Stop, TakeSavepoint
from tidemark.protocol.messages import AnyMessage
from tidemark.protocol.start import ControlEndpoint
from tidemark.protocol.status import DriverStatus

TOKEN = "a-token-of-this-test"


class ControlServer:
    """What it was told outlives `stop`, and `start` takes another port."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._address = folder / "server.json"
        self._changed = threading.Condition()
        self.heartbeats: list[Heartbeat] = []
        self.messages: dict[int, AnyMessage] = {}
        self.results: dict[int, CommandResult] = {}
        self.refused = 0
        self.fence = False
        self.answers_messages = True
        self._commands: list[Stop | TakeSavepoint | StateGet] = []

    @property
    def endpoint(self) -> ControlEndpoint:
        return ControlEndpoint(job_id="job-1", address_file=str(self._address), token=TOKEN)

    def start(self) -> None:
        self._closed = False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self._address.write_text(json.dumps({"url": f"http://127.0.0.1:{self._http.server_port}"}))

    def stop(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def ask(self, command: Stop | TakeSavepoint | StateGet) -> None:
        with self._changed:
            self._commands.append(command)
            self._changed.notify_all()

    def result(self, command_id: int, deadline: float = 60.0) -> CommandResult:
        return wait_until(lambda: self.results.get(command_id), deadline) or self.results[command_id]

    @property
    def status(self) -> DriverStatus | None:
        return self.heartbeats[-1].status if self.heartbeats else None

    def hear(self, heartbeat: Heartbeat) -> HeartbeatAnswer:
        with self._changed:
            self.heartbeats.append(heartbeat)
            if self.answers_messages:
                self.messages.update({sent.seq: sent.message for sent in heartbeat.messages})
            return HeartbeatAnswer(acked_seq=max(self.messages, default=0), fenced=self.fence)

    def wait_for_commands(self, after: int, seconds: float) -> Commands:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._after(after), seconds)
            return Commands(commands=tuple(self._after(after)))

    def _after(self, number: int) -> list[Stop | TakeSavepoint | StateGet]:
        return [command for command in self._commands if command.id > number]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if not self._allowed():
                    return
                if self.path.endswith("/heartbeat"):
                    self._answer(server.hear(Heartbeat.model_validate_json(body)).model_dump())
                else:
                    result = CommandResult.model_validate_json(body)
                    server.results[result.id] = result
                    self._answer({})

            def do_GET(self) -> None:
                if self._allowed():
                    asked = parse_qs(urlsplit(self.path).query)
                    found = server.wait_for_commands(int(asked["after"][0]), float(asked["wait"][0]))
                    self._answer(found.model_dump())

            def _allowed(self) -> bool:
                known = self.path.startswith("/internal/jobs/job-1/attempts/1/")
                if known and self.headers["Authorization"] == f"Bearer {TOKEN}":
                    return True
                server.refused += 1
                self.send_error(403)
                return False

            def _answer(self, content: dict[str, Any]) -> None:
                body = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None: ...

        return Handler
