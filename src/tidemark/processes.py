"""Processes of this machine beyond one's own children: who they are, whether they live, how all of one start end.

A process is known by its id together with when it began, since ids come round again. All that a driver starts
carries the mark of that start in its environment: it says what may be killed. A process whose standard input is a
pipe can end with whoever holds the other end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "TIDEMARK_DRIVER"
_START_FIELD = 19  # of /proc/<pid>/stat, counted behind the name of the program
_ZOMBIE = "Z"


def started_at(pid: int) -> str | None:
    """When the process began, in a form that differs for every process that ever has this id; None when it is gone."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == _ZOMBIE else f"{_boot()}/{fields[_START_FIELD - 1]}"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def is_running(pid: int, began: str) -> bool:
    """Whether the process lives and is still the one that began then; a dead one that nobody waited for does not."""
    return started_at(pid) == began


def kill_group(pid: int, began: str) -> None:
    """Kills the process group that this process leads, unless the id means another process by now."""
    if is_running(pid, began):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def kill_marked(mark: str, patience: float = 5.0) -> None:
    """Kills every process that carries the mark and waits until they are gone, so that they hold no file any more."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        alive = False
        for process in marked(mark):
            alive = True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        if not alive:
            return
        time.sleep(0.02)


def marked(mark: str) -> Iterator[int]:
    """Handles of the living processes with the mark in their environment; a handle outlives no reuse of the id."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            handle = os.pidfd_open(int(entry.name))
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield handle
            finally:
                os.close(handle)


def end_with_standard_input(exit_code: int) -> None:
    """Ends this process, whatever it does, when its standard input closes: whoever started it is gone."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os._exit(exit_code)

    threading.Thread(target=wait, daemon=True).start()
