"""A driver that does as it is told and speaks the real protocol: `scripted_driver.py SCENARIO RUN_SPEC`, no Spark.

The scenario is a JSON object from a job's name (or `*`) to one from an attempt's number (or `*`) to a list of steps,
each a list of a step's name and its arguments. What happens is noted in a diary beside the scenario.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

SCENARIO = Path(sys.argv[1])
SPEC = json.loads(Path(sys.argv[2]).read_text())
CONTROL = SPEC["control"]
JOB = SPEC["plan"]["job"]
DIARY = SCENARIO.with_suffix(".diary")
BEAT = 0.25
FENCED = 4
LONGEST_LIFE = 240.0


def now() -> str:
    return datetime.now(UTC).isoformat()


def note(event: str, **entry: object) -> None:
    line = {"event": event, "job": JOB, "attempt": SPEC["attempt"], "pid": os.getpid(), **entry}
    with open(DIARY, "a") as file:
        file.write(json.dumps(line) + "\n")


def call(method: str, path: str, body: object = None, timeout: float = 5.0) -> Any:
    """None when the server is away; its address is read again each time."""
    url = json.loads(Path(CONTROL["address_file"]).read_text())["url"]
    place = f"{url}/internal/jobs/{CONTROL['job_id']}/attempts/{SPEC['attempt']}/{path}"
    headers = {"Authorization": f"Bearer {CONTROL['token']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(place, data, headers, method=method), timeout=timeout) as answer:
            text = answer.read()
            return json.loads(text) if text else {}
    except HTTPError as error:
        note("refused", status=error.code, text=error.read().decode())
        return None
    except (URLError, OSError, HTTPException):
        return None


class Driver:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.messages: list[dict[str, Any]] = []
        self.seq = 0
        self.status: dict[str, Any] = {"state": "STARTING"}
        self.muted = False
        self.refuses = False
        self.stopped = threading.Event()
        self.savepoint_answers: list[dict[str, Any]] = []

    def say(self, kind: str, **fields: object) -> None:
        with self.lock:
            self.seq += 1
            self.messages.append({"seq": self.seq, "at": now(), "message": {"kind": kind, **fields}})
        self.beat()

    def beat(self) -> None:
        with self.lock:
            if self.muted:
                return
            body = {"pid": os.getpid(), "started_at": now(), "messages": self.messages, "status": self.status}
            answer = call("POST", "heartbeat", body)
            if answer is None:
                return
            if answer["fenced"]:
                note("fenced")
                os._exit(FENCED)
            self.messages = [each for each in self.messages if each["seq"] > answer["acked_seq"]]

    def beat_for_ever(self) -> None:
        while True:
            self.beat()
            time.sleep(BEAT)

    def obey(self) -> None:
        after = 0
        while True:
            answer = call("GET", f"commands?after={after}&wait=5", timeout=10)
            if answer is None:
                time.sleep(BEAT)
            for command in (answer or {}).get("commands", ()):
                note("command", command=command)
                after = command["id"]
                if not self.refuses:
                    self.carry_out(command)

    def carry_out(self, command: dict[str, Any]) -> None:
        if command["kind"] == "stop":
            self.status = {**self.status, "state": "STOPPING"}
            self.answer(command, {})
            self.stopped.set()
        elif command["kind"] == "savepoint":
            if self.savepoint_answers:
                planned = self.savepoint_answers.pop(0)
                call("POST", f"commands/{command['id']}/result", {"id": command["id"], **planned})
            else:
                write_savepoint(command)
                self.answer(command, {})
            if command["then_stop"]:
                self.stopped.set()
        else:
            entry = {"window_start": "2026-01-01T00:00:00Z", "values": {"orders": 3}}
            key = {"store": command["key"]}
            found = {"operator": command["operator"], "key": key, "query": "per_min", "epoch": 7, "age_ms": 12}
            self.answer(command, {**found, "entries": [entry]})

    def answer(self, command: dict[str, Any], result: dict[str, Any]) -> None:
        call("POST", f"commands/{command['id']}/result", {"id": command["id"], "ok": True, "result": result})


def write_savepoint(command: dict[str, Any]) -> None:
    """A savepoint of one file, as a real driver would leave it."""
    import hashlib

    from tidemark.savepoints.manifest import MANIFEST, Manifest, SavedFile, SavedQuery
    from tidemark.savepoints.storage import storage_at

    content = b"state"
    query = SPEC["plan"]["queries"][0]
    saved = SavedQuery(epoch=7, watermark=None, state_signature=query["state_signature"], parallelism=2)
    manifest = Manifest(
        savepoint_id=command["savepoint_id"],
        job=JOB,
        lineage=SPEC["lineage"],
        attempt=SPEC["attempt"],
        taken_at=datetime.now(UTC),
        first_started_at=SPEC["first_started_at"],
        tidemark="0",
        spark="0",
        plan=SPEC["plan"],
        queries={query["id"]: saved},
        files=(SavedFile(path="queries/x", size=len(content), sha256=hashlib.sha256(content).hexdigest()),),
    ).sealed()
    with storage_at(command["location"]).write() as draft:
        draft.write("queries/x", iter([content]))
        draft.write(MANIFEST, iter([manifest.model_dump_json().encode()]))


driver = Driver()


def total(events: int) -> dict[str, Any]:
    return {
        "sources": {"orders": {"events_in": events, "accepted": events - 1, "errors": 1}},
        "operators": {"per_min": {"rows_in": events - 1, "rows_out": 2, "passed": events - 3, "late": 2}},
        "sinks": {"out": {"rows": 2}},
    }


def epoch(number: int, lag: int = 7) -> None:
    events = 10 * (number + 1)
    marks = {"watermark": "2026-01-01T00:00:10Z", "max_event_time": "2026-01-01T00:00:15Z"}
    partitions = [
        {"partition": 0, **marks, "idle": False, "quiet_ms": 10_000, "offset": events, "end_offset": events, "lag": 0},
        {"partition": 1, **marks, "watermark": "2026-01-01T00:00:40Z", "idle": False, "lag": lag},
    ]
    sources = {"orders": {"watermark": marks["watermark"], "idle": False, "partitions": partitions}}
    checkpoint = {"epoch": number, "at": now(), "duration_ms": 20, "bytes": 1000}
    query = {"id": "per_min", "epoch": number, "watermark": marks["watermark"], "duration_ms": 100, "events": 10}
    operator = {"id": "per_min", "type": "window", "rows_in": events, "rows_out": 2, "late": 2, "state_rows": 3}
    driver.status = {
        "state": "RUNNING",
        "parallelism": 2,
        "watermark": marks["watermark"],
        "queries": [{**query, "committed_at": now(), "checkpoint": checkpoint}],
        "sources": sources,
        "operators": [{**operator, "state_bytes": 300, "busy": 0.5, "events_per_second": 10.0}],
        "sinks": [{"id": "out", "committed_epoch": number, "rows": 2, "last_commit_at": now()}],
        "lag_events": lag,
        "slowest_step": "per_min",
        "total": total(events),
        "open_windows": {"per_min": {"rows": 3, "earliest_end": "2026-01-01T00:01:00Z"}},
    }
    driver.say(
        "epoch",
        query="per_min",
        epoch=number,
        events=10,
        duration_ms=100,
        watermark=None,
        next_watermark=marks["watermark"],
        lag_events=lag,
        total=total(events),
        firing_ms={"per_min": 120},
        sink_commit_ms={"out": 5},
    )


def recovered(number: int | None) -> None:
    """The last epoch that this attempt found on the disk; None before it has looked."""
    queries = [] if number is None else [{"id": "per_min", "epoch": number, "watermark": None}]
    driver.status = {**driver.status, "queries": queries}


def value_of(name: str) -> str:
    """As a real driver finds it: in its environment, else in the file that its spec names."""
    stored = Path(SPEC["secrets"])
    return os.environ[name] if name in os.environ else str(json.loads(stored.read_text())[name]["value"])


def started() -> None:
    driver.status = {**driver.status, "state": "RUNNING"}
    driver.say("started", attempt=SPEC["attempt"], queries=["per_min"], recovered=SPEC["attempt"] > 1)


def ended(state: str) -> None:
    note("ended", state=state)
    driver.say("ended", state=state, epochs=3, watermark="2026-01-01T00:01:00Z", total=total(30))
    while driver.messages:
        driver.beat()
        time.sleep(BEAT)


def failed(code: str, domain: str, retry: str, message: str) -> None:
    failure = {"code": code, "domain": domain, "retry": retry, "message": message, "hint": "do this", "step": "out"}
    driver.say("failed", failure=failure)


def serve() -> None:
    """Runs until it is told to stop."""
    note("serving")
    driver.stopped.wait()
    ended("STOPPED")


def mute() -> None:
    driver.muted = True
    note("muted")
    while True:
        time.sleep(1)


def refuse_commands() -> None:
    driver.refuses = True


def child() -> None:
    """Leaves a process in a process group of its own."""
    process = subprocess.Popen(["sleep", "120"], process_group=0)
    note("child", child=process.pid)


def deaf() -> None:
    """Beats, but does nothing it is told."""
    note("serving")
    while True:
        time.sleep(1)


STEPS: dict[str, Callable[..., Any]] = {
    "started": started,
    "epoch": epoch,
    "recovered": recovered,
    "ended": ended,
    "failed": failed,
    "serve": serve,
    "deaf": deaf,
    "refuse_commands": refuse_commands,
    "mute": mute,
    "child": child,
    "savepoint_answer": driver.savepoint_answers.append,
    "warning": lambda text: driver.say("warning", code="w", message=text, step="orders"),
    "log": lambda text: print(text, file=sys.stderr, flush=True),
    "show_secret": lambda name: print(f"connecting to {value_of(name)} now", file=sys.stderr, flush=True),
    "fail_with_secret": lambda name: failed("sink_failed", "user", "never", f"cannot reach {value_of(name)}"),
    "fail_with": lambda text: failed("sink_failed", "user", "never", text),
    "exit": os._exit,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sleep": time.sleep,
}


def main() -> None:
    note("start", spec=SPEC, umask=os.umask(0o022))
    scenario = json.loads(SCENARIO.read_text())
    of_job = scenario.get(JOB, scenario.get("*"))
    steps = of_job.get(str(SPEC["attempt"]), of_job.get("*"))
    if ["never_speak"] in steps:
        time.sleep(LONGEST_LIFE)
        return
    limit = threading.Timer(LONGEST_LIFE, os._exit, (1,))  # a test that was killed leaves nothing for long
    limit.daemon = True
    limit.start()
    threading.Thread(target=driver.beat_for_ever, daemon=True).start()
    threading.Thread(target=driver.obey, daemon=True).start()
    for name, *arguments in steps:
        STEPS[name](*arguments)


main()
