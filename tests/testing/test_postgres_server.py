"""The PostgreSQL of the tests is a real one: it keeps what was committed through a kill, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from support.processes import is_alive
from support.waiting import wait_until

from tidemark.errors import EnvironmentFault
from tidemark.testing import postgres_server
from tidemark.testing.ports import free_ports
from tidemark.testing.postgres_server import PostgresServer

_FREEZES_ITS_SERVER = """
import sys, threading
from pathlib import Path
from tidemark.testing.postgres_server import PostgresServer

server = PostgresServer(Path(sys.argv[1]), int(sys.argv[2]), durable=False)
server.start()
server.freeze()
print("frozen", flush=True)
threading.Event().wait()
"""


def ask(server: PostgresServer, sql: str) -> str:
    with psycopg.connect(server.url, connect_timeout=10) as connection:
        ((value,),) = connection.execute(sql.encode()).fetchall()
    return str(value)


def postmaster_of(folder: Path) -> int:
    """The process that all others of the server belong to."""
    return int((folder / "cluster" / "postmaster.pid").read_text().splitlines()[0])


def test_committed_rows_survive_kills_and_stops(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url, connect_timeout=2)
    postgres.start()
    assert ask(postgres, "SELECT n FROM kept") == "7"
    postgres.stop()
    postgres.start()
    assert ask(postgres, "SELECT n FROM kept") == "7"


def test_a_frozen_server_goes_on_where_it_was(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url) as connection:
        postgres.freeze()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(postgres.url, connect_timeout=2)
        postgres.thaw()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_wrong_password_is_refused(postgres: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=postgres.port, user="postgres", password="guess")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_dev_command_prints_the_address_and_ends_with_everything_it_started(number: signal.Signals) -> None:
    folder = Path(tempfile.mkdtemp(prefix="tidemark-dev-"))
    words = ["dev", "postgres", "--port", str(free_ports(1)[0]), "--data", str(folder)]
    with subprocess.Popen([sys.executable, "-m", "tidemark", *words], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        url = command.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        postmaster = postmaster_of(folder)
        os.kill(command.pid, number)
        assert command.wait(30) == (0 if number == signal.SIGINT else -signal.SIGKILL)
    wait_until(lambda: not is_alive(postmaster))
    shutil.rmtree(folder)


def test_a_frozen_server_ends_with_whoever_started_it() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tidemark-frozen-"))
    starter = [sys.executable, "-c", _FREEZES_ITS_SERVER, str(folder), str(free_ports(1)[0])]
    with subprocess.Popen(starter, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "frozen\n"
        postmaster = postmaster_of(folder)
        process.kill()
    wait_until(lambda: not is_alive(postmaster))
    shutil.rmtree(folder)


def test_missing_programs_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "_PACKAGE", "no_such_package")
    with pytest.raises(EnvironmentFault) as caught:
        postgres_server._binary("postgres")
    assert "pip install" in (caught.value.hint or "")
