"""`dev postgres`: a real PostgreSQL in the foreground, for a laptop. On loopback only, with a password of its own."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from types import FrameType

from tidemark.cli.failures import FINE
from tidemark.errors import UsageError
from tidemark.settings import load_settings
from tidemark.testing.postgres_server import free_port, running_postgres


def dev_postgres(port: int, data: Path | None) -> int:
    """Prints the address as the first line of standard output; ends with Ctrl-C."""
    folder = data or load_settings(Path.cwd()).home / "dev" / "postgres"
    _check_free(port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with running_postgres(folder, port or free_port()) as server:
            print(server.url, flush=True)
            server.wait()
    except KeyboardInterrupt:
        return FINE
    raise UsageError("PostgreSQL ended by itself", hint=f"see {folder / 'server.log'}")


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}", hint="give another --port") from error


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
