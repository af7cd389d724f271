"""`dev postgres`: a real PostgreSQL in the foreground, for a laptop. On loopback only, with a password of its own."""

from __future__ import annotations

import socket
from pathlib import Path

from tidemark.cli.foreground import run_in_foreground
from tidemark.errors import UsageError
from tidemark.settings import load_settings
from tidemark.testing.postgres_server import running_postgres


def dev_postgres(port: int, data: Path | None) -> int:
    """Prints the address as the first line of standard output; ends with Ctrl-C."""
    folder = data or load_settings(Path.cwd()).home / "dev" / "postgres"
    _check_free(port)
    server = running_postgres(folder, port or None)
    return run_in_foreground("PostgreSQL", server, lambda running: running.url, folder / "server.log")


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}", hint="give another --port") from error
