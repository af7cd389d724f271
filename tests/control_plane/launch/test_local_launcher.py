"""Drivers as processes: what they inherit, how they are told apart, and that nothing of them is left."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.processes import is_alive
from support.waiting import wait_until

from tidemark.control_plane.launch.launcher import Launch
from tidemark.control_plane.launch.local import LocalLauncher
from tidemark.driver_log import DriverLog
from tidemark.errors import EnvironmentFault
from tidemark.processes import is_running, kill_group, started_at

PROGRAM = """\
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"], process_group=0)
print(child.pid, os.getsid(0) == os.getpid(), flush=True)
time.sleep(60 if sys.argv[1].endswith("stay") else 0)
sys.exit(7)
"""


def launch(folder: Path, name: str, mark: str) -> Launch:
    log = DriverLog(folder / "driver.log", folder / "secrets.json")
    return Launch(folder / name, log, mark, dict(os.environ))


def first_line(folder: Path) -> list[str]:
    log = folder / "driver.log"
    return wait_until(lambda: log.read_text().split() if log.exists() else [])


def test_a_driver_leads_a_session_and_is_killed_with_all_it_started(tmp_path: Path) -> None:
    launcher = LocalLauncher((sys.executable, "-c", PROGRAM))
    process = launcher.start(launch(tmp_path, "stay", "m/1"))
    child, leads = first_line(tmp_path)
    assert leads == "True"
    assert launcher.is_running(process)
    assert LocalLauncher().is_running(process)
    launcher.kill(process, "m/1")
    assert not launcher.is_running(process)
    assert not is_alive(int(child))


def test_the_end_of_a_driver_is_described(tmp_path: Path) -> None:
    launcher = LocalLauncher((sys.executable, "-c", PROGRAM))
    process = launcher.start(launch(tmp_path, "leave", "m/2"))
    wait_until(lambda: not launcher.is_running(process))
    assert launcher.describe_end(process) == "the driver ended with exit code 7 and no last word"
    assert LocalLauncher().describe_end(process) == "the driver is gone"
    launcher.kill(process, "m/2")
    assert not is_alive(int(first_line(tmp_path)[0]))


def test_another_process_of_the_same_id_is_left_alone() -> None:
    own = os.getpid()
    assert is_running(own, started_at(own) or "")
    assert not is_running(own, "another-boot/1")
    kill_group(own, "another-boot/1")
    assert started_at(2**22 + 1) is None


def test_a_driver_that_cannot_be_started_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="cannot be started"):
        LocalLauncher(("/nowhere/python",)).start(launch(tmp_path, "x", "m/3"))
