"""A driver that does as it is told: `fake_driver.py SCENARIO RUN_SPEC`, without Spark and within milliseconds.

The scenario is a JSON object from the number of the start (1, 2, … or `*`) to a list of steps, each a list of a
step's name and its arguments. Starts are counted in a file beside the scenario, which also gets what happened.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCENARIO = Path(sys.argv[1])
SPEC = json.loads(Path(sys.argv[2]).read_text())
REPORT = int(os.environ["TIDEMARK_REPORT_FD"])
DIARY = SCENARIO.with_suffix(".diary")
stopping = False


def note(**entry: object) -> None:
    with open(DIARY, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), "attempt": SPEC["attempt"], **entry}) + "\n")


def say(raw: bytes) -> None:
    while raw:
        raw = raw[os.write(REPORT, raw) :]


def send(kind: str, **fields: object) -> None:
    say(json.dumps({"kind": kind, **fields}).encode() + b"\n")


def total(events: int) -> dict[str, Any]:
    return {
        "sources": {"orders": {"events_in": events, "accepted": events - 1, "errors": 1}},
        "operators": {"per_min": {"rows_in": events - 1, "rows_out": 2, "passed": events - 3, "late": 2}},
        "sinks": {"out": {"rows": 2}},
    }


def started() -> None:
    send("started", attempt=SPEC["attempt"], queries=["per_min"], recovered=False)


def epoch(number: int) -> None:
    send(
        "epoch",
        query="per_min",
        epoch=number,
        events=10,
        duration_ms=100,
        watermark="2026-01-01T00:00:00Z",
        next_watermark="2026-01-01T00:01:00Z",
        lag_events=7,
        total=total(10 * (number + 1)),
    )


def ended(state: str, epochs: int = 3) -> None:
    watermark = "9999-12-31T23:59:59Z" if state == "FINISHED" else "2026-01-01T00:01:00Z"
    send("ended", state=state, epochs=epochs, watermark=watermark, total=total(30))


def failed(code: str, domain: str, retry: str, message: str) -> None:
    failure = {"code": code, "domain": domain, "retry": retry, "message": message, "hint": "do this", "step": "out"}
    send("failed", failure=failure)


def serve() -> None:
    """Runs until it is told to stop, or until its standard input closes."""
    note(event="serving")
    while not stopping:
        ready, _, _ = select.select([0], [], [], 0.01)
        if ready and not os.read(0, 1):
            note(event="orphaned")
            os._exit(70)
    note(event="stopped")
    ended("STOPPED")


def ignore_everything() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    note(event="serving")
    while True:
        time.sleep(1)


def child() -> None:
    """Leaves a process behind that holds the report pipe open, in a process group of its own."""
    process = subprocess.Popen(["sleep", "120"], pass_fds=(REPORT,), process_group=0)
    note(event="child", child=process.pid)


STEPS: dict[str, Callable[..., Any]] = {
    "started": started,
    "epoch": epoch,
    "ended": ended,
    "ended_empty": lambda: send("ended", state="FINISHED", epochs=0, watermark=None, total={}),
    "failed": failed,
    "serve": serve,
    "ignore_everything": ignore_everything,
    "child": child,
    "console": lambda text: send("console", sink="screen", text=text),
    "warning": lambda text: send("warning", code="w", message=text, step="orders"),
    "garbage": lambda text: say(text.encode("latin-1")),
    "log": lambda text: print(text, file=sys.stderr, flush=True),
    "exit": sys.exit,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sleep": time.sleep,
}


def on_interrupt(number: int, frame: object) -> None:
    global stopping
    stopping = True


def main() -> None:
    starts = DIARY.read_text().count('"event": "start"') + 1 if DIARY.exists() else 1
    note(event="start", spec=SPEC, environment=dict(os.environ))
    scenario = json.loads(SCENARIO.read_text())
    for name, *arguments in scenario.get(str(starts), scenario.get("*")):
        if name == "listen":
            signal.signal(signal.SIGINT, on_interrupt)
        else:
            STEPS[name](*arguments)


main()
