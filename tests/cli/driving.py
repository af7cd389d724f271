"""Helpers of the command line's tests: a fake driver to supervise, plans, and the real command with that driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan

HERE = Path(__file__).parent
FAKE_DRIVER = HERE / "fake_driver.py"
COMMAND = HERE / "command_with_fake_driver.py"
JOB = """\
tidemark: 1
name: shop
sources:
  orders:
    files: {path: in, format: jsonl}
    schema: {store: string, amount: double, ts: timestamp}
    event_time: ts
operators:
  per_min: {type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {orders: count()}}
sinks:
  out: {input: per_min, sqlite: {path: out.db, table: t, key: [store, window_start]}}
  late: {input: per_min.late, files: {path: late, format: jsonl}}
  bad: {input: orders.errors, files: {path: bad, format: jsonl}}
"""
Step = Sequence[Any]
FINISH: list[Step] = [["started"], ["epoch", 0], ["epoch", 1], ["epoch", 2], ["ended", "FINISHED"]]
SERVE: list[Step] = [["listen"], ["started"], ["epoch", 0], ["serve"]]
CRASH: list[Step] = [["started"], ["kill"]]


@dataclass(frozen=True)
class Scenario:
    """What the fake driver does at each of its starts, and what it noted."""

    path: Path

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, str(FAKE_DRIVER), str(self.path))

    def diary(self, event: str | None = None) -> list[dict[str, Any]]:
        diary = self.path.with_suffix(".diary")
        entries = [json.loads(line) for line in diary.read_text().splitlines()] if diary.exists() else []
        return [entry for entry in entries if event in (None, entry["event"])]

    def attempts(self) -> list[int]:
        return [entry["attempt"] for entry in self.diary("start")]


def scenario(folder: Path, starts: dict[str, list[Step]]) -> Scenario:
    path = folder / "scenario.json"
    path.write_text(json.dumps(starts))
    return Scenario(path)


def plan(job: str = "shop", **signatures: str) -> ExecutionPlan:
    """A plan with the given queries and signatures, and nothing to run: the fake driver does not look inside."""
    queries = tuple(_query(name, signature) for name, signature in (signatures or {"per_min": "a"}).items())
    return ExecutionPlan(job=job, sources={}, operators={}, sinks={}, queries=queries)


def _query(name: str, signature: str) -> QueryPlan:
    return QueryPlan(
        id=name,
        terminal=name,
        sources=("orders",),
        operators=("valid", name),
        side_operators=(),
        sinks=("out",),
        accounts=(),
        state_signature=signature,
    )


def start_command(folder: Path, driver: Scenario | None, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """The real `tidemark` command in `folder`, as a process; with a scenario, `run` starts the fake driver."""
    return subprocess.Popen(
        [sys.executable, str(COMMAND), *arguments],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")},
            "FAKE_DRIVER": json.dumps(driver.command if driver else ["false"]),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def finish(process: subprocess.Popen[str], timeout: float = 60) -> Answer:
    out, err = process.communicate(timeout=timeout)
    return Answer(process.returncode, out, err)


def tidemark(folder: Path, *arguments: str, driver: Scenario | None = None, **environment: str) -> Answer:
    return finish(start_command(folder, driver, *arguments, **environment))
