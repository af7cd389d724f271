"""A real `tidemark run` in a folder, as the recovery tests see it: its processes, its epochs, its words and its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from faults import workload
from support import quick_java
from support.waiting import wait_until

# Far beyond what a start or an epoch takes: only a run that hangs gets there.
PATIENCE = 240.0


@dataclass(frozen=True)
class Outcome:
    """How a run ended; the accounting is in `summary`."""

    code: int
    summary: dict[str, Any]


class Run:
    """Starts the command at once; `words` are its lines on standard error, each with the time it came."""

    def __init__(
        self, folder: Path, *options: str, failpoints: str = "", variables: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.started_at = time.time()
        self.words: list[tuple[float, str]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tidemark", "run", "job.yaml", "--json", *options],
            cwd=folder,
            env={**environment(failpoints), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self.words.append((time.time(), line.rstrip()))

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> Outcome:
        assert self._process.stdout is not None
        with self._process.stdout as answer:
            out = answer.read()
        code = self._process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        return Outcome(code, json.loads(out) if out else {})

    def end(self) -> None:
        """Kills whatever of it is left; for runs that a failed test leaves behind."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        for pid in processes(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def said(self, text: str) -> list[float]:
        """When it said a line with that text."""
        return [at for at, line in self.words if text in line]

    def attempts(self) -> list[int]:
        """The attempts that got as far as starting their queries."""
        found = (re.search(r"\(attempt (\d+)", line) for _, line in self.words)
        return [int(match[1]) for match in found if match]

    def wait_for_attempt(self, attempt: int) -> None:
        wait_until(lambda: attempt in self.attempts() or self.has_ended(), PATIENCE)
        assert attempt in self.attempts(), self.words

    def wait_for_commits(self, more: int) -> None:
        """Until that many more epochs are committed than now."""
        wanted = len(commits(self.folder)) + more
        wait_until(lambda: len(commits(self.folder)) >= wanted or self.has_ended(), PATIENCE)
        assert self._process.poll() is None, self.words

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def driver(self) -> int:
        return self._only("tidemark.data_plane")

    def jvm(self) -> int:
        return self._only("org.apache.spark.deploy.SparkSubmit")

    def _only(self, text: str) -> int:
        (pid,) = [pid for pid in processes(self.folder) if text in command_line(pid)]
        return pid


class Start(Protocol):
    def __call__(self, *options: str, failpoints: str = "") -> Run: ...


def environment(failpoints: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    chosen = {"TIDEMARK_FAILPOINT": failpoints} if failpoints else {}
    return {**kept, **chosen, "TIDEMARK_DRIVER_MEMORY": "1g", quick_java.VARIABLE: quick_java.QUICK_START}


def job_folder(folder: Path) -> Path:
    return folder / ".tidemark" / "jobs" / workload.NAME


def commits(folder: Path) -> list[float]:
    """When each epoch that is committed by now, of any query, was committed."""
    entries = job_folder(folder).glob("queries/*/commits/[0-9]*")
    return sorted(entry.stat().st_mtime for entry in entries)


def commits_by_query(folder: Path) -> dict[str, dict[int, float]]:
    """The epochs of each query that are committed by now, and when that was."""
    found: dict[str, dict[int, float]] = {}
    for entry in job_folder(folder).glob("queries/*/commits/[0-9]*"):
        with contextlib.suppress(FileNotFoundError):
            found.setdefault(entry.parents[1].name, {})[int(entry.name)] = entry.stat().st_mtime
    return found


def driver_log(folder: Path) -> str:
    return (job_folder(folder) / "driver.log").read_text(errors="replace")


def processes(folder: Path) -> list[int]:
    """Everything that a driver of this folder started and is still alive, the driver included."""
    mark = f"SPARK_LOCAL_DIRS={job_folder(folder) / 'scratch'}".encode()
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if mark in _environ(entry)]


def command_line(pid: int) -> str:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def _environ(entry: Path) -> list[bytes]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        return (entry / "environ").read_bytes().split(b"\0")
    return []
