"""The server process: takes the home for itself, opens the store, binds, tells everybody where it is, and serves."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from tidemark.control_plane.api.app import make_app
from tidemark.control_plane.api.services import Services
from tidemark.control_plane.jobs.bell import Bell
from tidemark.control_plane.jobs.plane import Plane, Timing
from tidemark.control_plane.jobs.variables import Variables
from tidemark.control_plane.launch.launcher import Launcher
from tidemark.control_plane.launch.local import LocalLauncher, current_umask
from tidemark.control_plane.savepoints.deletion import finish_deletions
from tidemark.control_plane.store.access import list_tokens
from tidemark.control_plane.store.database import Database
from tidemark.durable import lock_exclusively, make_folder, write_atomically
from tidemark.errors import AlreadyRunning, UsageError
from tidemark.settings import Settings

STORE = "control.db"
ADDRESS = "server.json"
_LOCK = "server.lock"
_LOCK_SECONDS = 2.0
_PRIVATE = 0o077
_BACKLOG = 512


def serve(settings: Settings, base: Path, launcher: Launcher | None = None, timing: Timing | None = None) -> None:
    """Serves until SIGINT or SIGTERM; the jobs run on. The address is the first line on standard output."""
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    umask = current_umask()
    os.umask(_PRIVATE)
    with _alone(settings.home):
        database = Database(settings.home / STORE)
        check_exposure(settings.host, database)
        plane = Plane(
            database=database,
            launcher=launcher or LocalLauncher(umask=umask),
            settings=settings,
            base=base,
            address_file=settings.home / ADDRESS,
            variables=Variables(dict(os.environ), settings.home),
            timing=timing or Timing(),
        )
        plane.variables.current()
        finish_deletions(plane)
        try:
            _serve(plane)
        finally:
            database.close()


def check_exposure(host: str, database: Database) -> None:
    """Raises UsageError for an address that others can reach while nobody needs a token."""
    with database.reading() as connection:
        if not is_loopback(host) and not list_tokens(connection):
            raise UsageError(
                f"{host} can be reached from other machines, and there are no tokens",
                hint="make one with `tidemark tokens create --role admin`, or serve on 127.0.0.1",
            )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _serve(plane: Plane) -> None:
    settings = plane.settings
    listener = _bind(settings.host, settings.port)
    url = f"http://{_bracketed(settings.host)}:{listener.getsockname()[1]}"
    app = make_app(
        Services.of(plane), ("localhost", "127.0.0.1", "[::1]", _bracketed(settings.host), *settings.allowed_hosts)
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
        limit_concurrency=2000,
    )
    uvicorn_server = _Server(config, plane.bell)
    _end_on_signals(uvicorn_server)
    write_atomically(plane.address_file, json.dumps({"url": _reachable(url), "pid": os.getpid()}))
    print(url, flush=True)
    uvicorn_server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Lets requests that wait go when it is told to end, instead of waiting for them."""

    def __init__(self, config: uvicorn.Config, bell: Bell) -> None:
        super().__init__(config)
        self._bell = bell

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._bell.close()


def _end_on_signals(server: uvicorn.Server) -> None:
    """Also for signals that come before uvicorn listens to them, or that it passes on: an orderly end is no failure."""

    def end(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _reachable(url: str) -> str:
    """How a driver of this machine calls a server that listens on every address."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By name: asyncio sends at once only on sockets that say they are TCP, and else waits 40 ms between head and body.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            hint="choose another with --port, or 0 to have one picked",
        ) from None
    return listener


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One server for a home: the store has one reconcile loop."""
    make_folder(home)
    with open(home / _LOCK, "a+", encoding="utf-8") as lock:
        if not lock_exclusively(lock, _LOCK_SECONDS):
            raise AlreadyRunning(f"another server uses {home}", hint="stop it, or set TIDEMARK_HOME to another folder")
        yield
