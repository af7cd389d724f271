"""A real server with real drivers, as a user starts it: its process, its calls, and when its jobs committed epochs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tidemark.generations import Generations

T = TypeVar("T")
Json = dict[str, Any]
YAML = {"Content-Type": "application/yaml"}
_POLL_SECONDS = 0.1
_END_SECONDS = 20
_SLOW_START = 300.0


def wait_until(condition: Callable[[], T | None], what: str, deadline: float = _SLOW_START) -> T:
    """The first true value of `condition`; TimeoutError that says what was waited for after `deadline` seconds."""
    end = time.monotonic() + deadline
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() >= end:
            raise TimeoutError(f"{what}: not within {deadline:g} s")
        pause.wait(_POLL_SECONDS)
    return value


@dataclass
class Server:
    """The server of one folder, which is its home and what relative paths in jobs mean."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30, trust_env=False))

    def start(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        with open(self.folder / "server.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tidemark", "server", "--port", "0"],
                cwd=self.folder,
                env={**inherited, "TIDEMARK_DRIVER_MEMORY": "1g", **self.settings},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        url = self.process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"the server did not start: see {self.folder / 'server.log'}")
        self.http.base_url = httpx.URL(url)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(number)
        self.process.wait(_END_SECONDS)
        self.process.stdout.close()

    def close(self) -> None:
        """Cancels every job, so that no driver is left, and ends the server."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        for job in self.call("GET", "/jobs")["jobs"]:
            self.http.delete(f"/jobs/{job['job_id']}")
        wait_until(lambda: not any(map(_lives, self.call("GET", "/jobs")["jobs"])), "all jobs canceled", 60)
        self.end()
        self.http.close()

    # --- calls ------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, text: str | None = None, **query: Any) -> Json:
        """The answer, which must be a good one."""
        answer = self.http.request(method, path, content=text, headers=YAML if text else None, params=query)
        if answer.status_code >= 400:
            raise RuntimeError(f"{method} {path} was answered {answer.status_code}: {answer.text}")
        found: Json = answer.json()
        return found

    def job(self, job_id: str) -> Json:
        return self.call("GET", f"/jobs/{job_id}")

    def submit(self, text: str, **query: Any) -> str:
        return str(self.call("POST", "/jobs", text, **query)["job_id"])

    def epochs(self, job_id: str) -> dict[str, int]:
        """The last committed epoch of each query."""
        queries = self.job(job_id)["queries"]
        return {query["id"]: -1 if query["epoch"] is None else query["epoch"] for query in queries}

    def wait_for(self, job_id: str, *states: str) -> Json:
        def reached() -> Json | None:
            job = self.job(job_id)
            if job["state"] == "FAILED" and "FAILED" not in states:
                raise RuntimeError(f"job {job_id} failed: {job['last_error']}")
            return job if job["state"] in states else None

        return wait_until(reached, f"job {job_id} in {' or '.join(states)}") or {}

    def wait_beyond(self, job_id: str, epochs: dict[str, int], attempt: int = 0) -> Json:
        """The job once it runs, in that attempt or a later one, and every query has gone on."""

        def gone_on() -> Json | None:
            job = self.wait_for(job_id, "RUNNING")
            known = {query["id"]: query["epoch"] for query in job["queries"]}
            ahead = bool(known) and all(
                epoch is not None and epoch > epochs.get(query, -1) for query, epoch in known.items()
            )
            return job if ahead and job["attempt"] >= attempt else None

        return wait_until(gone_on, f"job {job_id} beyond {epochs}") or {}

    def events(self, job_id: str) -> list[Json]:
        found: list[Json] = self.call("GET", f"/jobs/{job_id}/events", limit=100)["events"]
        return found

    # --- behind its back --------------------------------------------------------------------------------------

    def driver(self, job_id: str) -> int:
        """The process of a job's driver, which leads its process group."""
        found = processes_with(str(self.folder / ".tidemark/jobs" / job_id / "run.json"))
        leaders = [process for process in found if os.getpgid(process) == process]
        if not leaders:
            raise LookupError(f"job {job_id} has no driver")
        return leaders[0]

    def commit_times(self, job_id: str, query: str) -> list[float]:
        """When Spark committed each of the last hundred epochs or so, by the clock of the disk."""
        state = Generations(self.folder / ".tidemark/jobs" / job_id / "queries").current
        times = (_modified(entry) for entry in (state / query / "commits").glob("[0-9]*"))
        return sorted(at for at in times if at is not None)

    def next_commit(self, job_id: str, query: str, after: float) -> float:
        """When the first epoch after that moment was committed, which may still have to happen.

        What the server shows can lag behind a commit, so an epoch that is new to it may be older than a kill.
        """
        return wait_until(
            lambda: next((at for at in self.commit_times(job_id, query) if at > after), None),
            f"an epoch of {query} of job {job_id} after a kill",
        )


def _lives(job: Json) -> bool:
    return job["state"] not in ("CANCELED", "FAILED", "FINISHED", "STOPPED")


def _modified(path: Path) -> float | None:
    """None for a file that Spark has just cleared away."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def processes_with(argument: str) -> list[int]:
    """The processes that were started with this among their arguments."""
    return [
        process for process in map(int, filter(str.isdigit, os.listdir("/proc"))) if argument in _arguments(process)
    ]


def _arguments(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []
