"""`secrets …` as a user types it, and the run that takes one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from cli.driving import FINISH, JOB, scenario, tidemark

SECRET = "hunter2-planted-secret"


def secrets(folder: Path, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    command = [sys.executable, "-m", "tidemark", "secrets", *words]
    return subprocess.run(command, cwd=folder, env=kept, input=typed, capture_output=True, text=True, check=False)


def test_a_secret_is_piped_in_listed_by_name_and_deleted(tmp_path: Path) -> None:
    assert secrets(tmp_path, "set", "PG", typed=f"{SECRET}\n").stdout == "PG: set\n"
    shown = [secrets(tmp_path, "list"), secrets(tmp_path, "list", "--json")]
    assert shown[0].stdout.splitlines()[0].split() == ["NAME", "SET", "AT"]
    assert '"name": "PG"' in shown[1].stdout
    assert not [each for each in shown if SECRET in each.stdout + each.stderr]
    assert secrets(tmp_path, "delete", "PG").stdout == "PG: deleted\n"
    gone = secrets(tmp_path, "delete", "PG")
    assert (gone.returncode, "error[not_found]" in gone.stderr) == (2, True)


def test_a_value_is_not_taken_from_an_argument(tmp_path: Path) -> None:
    refused = secrets(tmp_path, "set", "PG", SECRET)
    assert refused.returncode == 2
    assert not (tmp_path / ".tidemark" / "secrets").exists()


def test_on_a_terminal_the_value_is_asked_for_and_not_shown(tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "tidemark", "secrets", "set", "PG"])
    shown = b""
    while b"PG: " not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, f"{SECRET}\n".encode())
    while b"PG: set" not in shown:
        shown += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert SECRET.encode() not in shown
    assert SECRET in (tmp_path / ".tidemark/secrets/secrets.json").read_text()


def test_a_run_tells_its_driver_where_secrets_are_and_not_what(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("table: t", "table: $PG"))
    secrets(tmp_path, "set", "PG", typed=SECRET)
    answer = tidemark(tmp_path, "run", "job.yaml", driver=scenario(tmp_path, {"*": FINISH}))
    assert answer.code == 0, answer.err
    spec = (tmp_path / ".tidemark/jobs/shop/run.json").read_text()
    assert str(tmp_path / ".tidemark/secrets/secrets.json") in spec
    assert SECRET not in spec
