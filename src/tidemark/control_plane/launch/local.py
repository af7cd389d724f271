"""Drivers as processes of this machine, each in a session of its own, so that they outlive the control plane."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from tidemark.control_plane.launch.launcher import Launch, Process
from tidemark.driver_log import LARGEST
from tidemark.errors import EnvironmentFault
from tidemark.processes import MARK, is_running, kill_group, kill_marked, started_at

DRIVER = (sys.executable, "-m", "tidemark.data_plane")


@dataclass(frozen=True)
class _Child:
    driver: subprocess.Popen[bytes]
    log_writer: subprocess.Popen[bytes]


class LocalLauncher:
    """`umask` is that of the files a job writes; the control plane's own are private."""

    def __init__(self, command: Sequence[str] = DRIVER, umask: int = 0o022, largest_log: int = LARGEST) -> None:
        self._command = command
        self._umask = umask
        self._largest_log = largest_log
        self._children: dict[int, _Child] = {}

    def start(self, launch: Launch) -> Process:
        writer = launch.log.start_writer(launch.environment, self._largest_log)
        assert writer.stdin is not None
        try:
            with writer.stdin as log:
                driver = self._start_driver(launch, log)
        except OSError as error:
            writer.wait()
            raise EnvironmentFault(
                f"the driver cannot be started: {error}", hint="`tidemark doctor` says what is missing"
            ) from None
        self._children[driver.pid] = _Child(driver, writer)
        return {"pid": driver.pid, "began": started_at(driver.pid)}

    def is_running(self, process: Process) -> bool:
        child = self._children.get(process["pid"])
        if child is not None:
            # A child whose threads are still ending looks dead in /proc, and how it ended is not known yet.
            return child.driver.poll() is None
        return process["began"] is not None and is_running(process["pid"], process["began"])

    def describe_end(self, process: Process) -> str:
        child = self._children.get(process["pid"])
        code = None if child is None else child.driver.poll()
        if code is None:
            return "the driver is gone"
        if code < 0:
            return f"the driver was killed by {signal.Signals(-code).name}"
        return f"the driver ended with exit code {code} and no last word"

    def kill(self, process: Process | None, mark: str) -> None:
        if process is not None and process["began"] is not None:
            kill_group(process["pid"], process["began"])
        kill_marked(mark)
        child = self._children.pop(process["pid"], None) if process is not None else None
        if child is not None:
            child.driver.wait()
            child.log_writer.wait()

    def _start_driver(self, launch: Launch, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._command, str(launch.spec)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            umask=self._umask,
            env={**launch.environment, MARK: launch.mark},
        )


def current_umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
