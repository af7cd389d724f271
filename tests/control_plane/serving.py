"""Helpers of the control plane's tests: a real server as a process, with drivers that follow a script."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from support.waiting import wait_until

HERE = Path(__file__).parent
DRIVER = HERE / "scripted_driver.py"
SERVER = HERE / "server_with_scripted_driver.py"
YAML = {"Content-Type": "application/yaml"}
QUICK = {
    "heartbeat": 4.0,
    "own_start": 4.0,
    "driver_start": 20.0,
    "cancel": 1.0,
    "stop": 20.0,
    "farewell": 2.0,
    "first_pause": 0.05,
    "longest_pause": 0.2,
    "tick": 0.05,
}
Step = Sequence[Any]
Script = dict[str, dict[str, list[Step]]]
SERVE: list[Step] = [["started"], ["epoch", 7], ["serve"]]
RUNS: Script = {"*": {"*": SERVE}}


def job_text(name: str = "shop", sink: str = "sqlite: {path: out.db, table: t, key: [store, window_start]}") -> str:
    return f"""\
tidemark: 1
name: {name}
sources:
  orders:
    files: {{path: in, format: jsonl, partition: part, partitions: 2}}
    schema: {{store: string, amount: double, part: int, ts: timestamp}}
    event_time: ts
operators:
  valid: {{type: filter, input: orders, where: "amount > 0"}}
  per_min: {{type: window, input: valid, key: [store], window: {{tumbling: 1m}}, aggregate: {{orders: count()}}}}
sinks:
  out: {{input: per_min, {sink}}}
  late: {{input: per_min.late, files: {{path: late, format: jsonl}}}}
  bad: {{input: orders.errors, files: {{path: bad, format: jsonl}}}}
"""


@dataclass
class Server:
    """One home; the server in it can be killed and started again."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=lambda: dict(QUICK))
    process: subprocess.Popen[str] | None = None
    url: str = ""
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30, trust_env=False))

    def script(self, script: Script) -> None:
        (self.folder / "scenario.json").write_text(json.dumps(script))

    def start(self, script: Script | None = None) -> None:
        if script is not None:
            self.script(script)
        with open(self.folder / "server.err", "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(SERVER)],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, (self.folder / "server.err").read_text()
        self.http.base_url = httpx.URL(self.url)

    def _environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")},
            "SCRIPTED_DRIVER": json.dumps([sys.executable, str(DRIVER), str(self.folder / "scenario.json")]),
            "TIMING": json.dumps(self.timing),
            "TIDEMARK_PORT": "0",
            **self.environment,
        }

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def diary(self, event: str | None = None, job: str | None = None) -> list[dict[str, Any]]:
        diary = self.folder / "scenario.diary"
        entries = [json.loads(line) for line in diary.read_text().splitlines()] if diary.exists() else []
        return [each for each in entries if event in (None, each["event"]) and job in (None, each["job"])]

    def serving(self, job: str | None = None) -> int:
        """The first driver, of that job or any, that serves; a job is shown as running a little before that."""
        return int(wait_until(lambda: self.diary("serving", job), 20)[0]["pid"])

    def submit(self, name: str = "shop", **query: Any) -> str:
        answer = self.http.post("/jobs", content=job_text(name), headers=YAML, params=query)
        assert answer.status_code == 201, answer.text
        job_id: str = answer.json()["job_id"]
        return job_id

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def job(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.get(f"/jobs/{job_id}")
        return job

    def wait_for(self, job_id: str, *states: str, deadline: float = 20) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] in states else None

        try:
            return wait_until(reached, deadline) or {}
        except TimeoutError:
            log = (self.folder / "server.err").read_text()[-2000:]
            raise AssertionError(
                f"{self.job(job_id)['state']} instead of {states}: {self.causes(job_id)}\n{log}"
            ) from None

    def wait_for_epoch(self, job_id: str) -> dict[str, Any]:
        """The job when it runs and has committed something."""
        return wait_until(lambda: (job := self.job(job_id))["epoch"] and job["state"] == "RUNNING" and job, 20)

    def causes(self, job_id: str, kind: str | None = None) -> list[str]:
        events = self.get(f"/jobs/{job_id}/events")["events"]
        return [each["cause"] for each in reversed(events) if kind in (None, each["kind"])]

    def states(self, job_id: str) -> list[str]:
        """Every state the job has been in, in order."""
        events = self.get(f"/jobs/{job_id}/events")["events"]
        return [each["to_state"] for each in reversed(events) if each["to_state"]]


def kill_drivers(folder: Path) -> None:
    """Kills every process whose command names a job of this folder, also one that has only just been started."""
    wait_until(lambda: not any(_kill(pid) for pid in drivers(folder)))


def drivers(folder: Path) -> list[int]:
    """The processes that run a spec below this folder: drivers, not what they started."""
    place = os.fsencode(folder / ".tidemark" / "jobs")
    found = ((int(entry.parent.name), _arguments(entry)) for entry in Path("/proc").glob("[0-9]*/cmdline"))
    return [pid for pid, words in found if words and words[-1].startswith(place) and words[-1].endswith(b"run.json")]


def _arguments(entry: Path) -> list[bytes]:
    try:
        return entry.read_bytes().rstrip(b"\0").split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _kill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return True


@contextlib.contextmanager
def running_server(
    folder: Path, script: Script = RUNS, timing: dict[str, float] | None = None, **environment: str
) -> Iterator[Server]:
    """A server and, at the end, nothing of it or of its drivers left."""
    server = Server(folder, environment, QUICK | (timing or {}))
    server.start(script)
    try:
        yield server
    finally:
        server.http.close()
        if server.process is not None and server.process.poll() is None:
            server.end(signal.SIGKILL)
        kill_drivers(folder)
