"""Processes as a test sees them from outside: whether they live, and freezing one so that nothing of it runs on."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from support.waiting import wait_until

_DEAD, _STOPPED = "Z", "T"


def is_alive(pid: int) -> bool:
    """Whether the process runs; a dead one that nobody has waited for does not count."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return _state(Path(f"/proc/{pid}")) != _DEAD
    return False


def freeze(pid: int) -> None:
    """Returns when every thread has stopped: until the chosen one gets the processor, the others go on."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid))


def is_stopped(pid: int) -> bool:
    return all(_state(thread) == _STOPPED for thread in Path(f"/proc/{pid}/task").iterdir())


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]
