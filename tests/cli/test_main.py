"""The command itself: help, version, start-up cost, and what a user sees when something unforeseen happens."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from cli.driving import JOB, finish, start_command, tidemark

COMMANDS = ("run", "validate", "explain", "test", "doctor", "demo")
HEAVY = {"pyspark", "py4j", "pandas", "pyarrow", "numpy"}
NOT_FOR_HELP = HEAVY | {"pydantic", "rich", "ruamel", "sqlglot", "tidemark.compiler", "tidemark.protocol"}
NOT_FOR_VALIDATE = HEAVY | {"rich", "pydantic_settings", "tidemark.protocol", "tidemark.data_plane"}
LIST_MODULES = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from tidemark.cli.main import main
main()
"""
RAISE = """
from tidemark.cli import main
def explode(*paths, **options): raise LookupError("a secret of the inside")
import tidemark.cli.check
tidemark.cli.check.validate = explode
main.main()
"""


def modules_of(folder: Path, *arguments: str) -> set[str]:
    command = [sys.executable, "-c", LIST_MODULES, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_names_every_command(tmp_path: Path) -> None:
    answer = tidemark(tmp_path, "--help")
    assert answer.code == 0
    assert [name for name in COMMANDS if re.search(rf"^\s+{name} ", answer.out, re.MULTILINE)] == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    answer = tidemark(tmp_path, command, "--help")
    assert answer.code == 0
    assert "\x1b" not in answer.out


def test_version(tmp_path: Path) -> None:
    assert re.fullmatch(r"tidemark \d+\.\d+\.\d+\n", tidemark(tmp_path, "--version").out)


@pytest.mark.parametrize("arguments", [("fly",), ("run",), ("run", "a", "b"), ("run", "--soon", "a"), ("validate",)])
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    answer = tidemark(tmp_path, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "Usage" in answer.err


def test_help_loads_next_to_nothing(tmp_path: Path) -> None:
    assert not NOT_FOR_HELP & modules_of(tmp_path, "--help")


def test_validate_does_not_load_spark(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert not NOT_FOR_VALIDATE & modules_of(tmp_path, "validate", "job.yaml")


def processor_seconds() -> float:
    """Spent so far by the processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("arguments", [("--help",), ("validate", "job.yaml")])
def test_answers_at_once(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Half a second on a quiet machine: processor time, the best of five, with room for a busy one."""
    (tmp_path / "job.yaml").write_text(JOB)
    seconds = []
    for _ in range(5):
        start = processor_seconds()
        assert tidemark(tmp_path, *arguments).code == 0
        seconds.append(processor_seconds() - start)
    assert min(seconds) < 0.75


def test_the_unforeseen_shows_no_trace_but_keeps_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RAISE, "validate", "job.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error[internal]: a secret of the inside" in done.stderr
    assert "Traceback" not in done.stderr
    match = re.search(r"in (\S+\.log)", done.stderr)
    assert match
    log = Path(match[1])
    assert "LookupError" in log.read_text()
    log.unlink()


def test_a_closed_pipe_is_no_error_message(tmp_path: Path) -> None:
    process = start_command(tmp_path, None, "--help")
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    assert finish(process).err in ("", None)


def test_python_m_tidemark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidemark", "--version"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout.startswith(b"tidemark ")


def test_what_is_to_come_is_refused_by_name(tmp_path: Path) -> None:
    answer = tidemark(tmp_path, "errors", "replay", "job.yaml", "--since", "1h")
    assert (answer.code, "error[not_available]" in answer.err) == (2, True)
