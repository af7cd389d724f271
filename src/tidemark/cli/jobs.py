"""`jobs …`: what a user asks of a server about jobs, and how the answers are shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidemark.cli.client import Client
from tidemark.cli.failures import FAILED, FINE, diagnostic_text
from tidemark.cli.job_file import read_job_file
from tidemark.cli.render import counted
from tidemark.cli.tables import put, show, table
from tidemark.compiler.diagnostics.diagnostic import Diagnostic

POLL_SECONDS = 0.3
RESTING = ("CREATED", "STOPPED", "CANCELED", "FAILED", "FINISHED")
LIST = ("job", "name", "state", "attempt", "restarts", "watermark", "epoch", "lag", "pressure", "alerts")


def submit(
    path: Path, *, start: bool, dry_run: bool, savepoint: str | None, accept: list[str], wait: bool, as_json: bool
) -> int:
    client = Client.here()
    query = {"start": start, "dry_run": dry_run, "from_savepoint": savepoint, "accept": accept}
    answer = client.call("POST", "/jobs", query=query, definition=read_job_file(path))
    if dry_run:
        put(answer, [f"{path}: ok, would be submitted as {answer['name']}"], as_json=as_json)
        return FINE
    if wait and start:
        answer |= _followed(client, answer["job_id"], ("RUNNING", *RESTING))
    warned = [diagnostic_text(str(path), _warning(each)) for each in answer["warnings"]]
    put(answer, [*warned, _line(answer)], as_json=as_json)
    return _verdict(answer)


def _warning(fields: dict[str, Any]) -> Diagnostic:
    return Diagnostic(**fields, severity="warning")


def list_jobs(states: list[str], *, as_json: bool) -> int:
    """All of them, page by page."""
    client, found, cursor = Client.here(), [], None
    while True:
        page = client.get("/jobs", state=[state.upper() for state in states], cursor=cursor)
        found += page["jobs"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    put(found, table(LIST, [_row(job) for job in found]), as_json=as_json)
    return FINE


def _row(job: dict[str, Any]) -> list[object]:
    epoch, pressure = job["epoch"] or {}, job["backpressure"]
    return [
        *(job[name] for name in ("job_id", "name", "state", "attempt", "restarts", "watermark")),
        epoch.get("id"),
        pressure["lag_events"],
        pressure["level"],
        len(job["alerts"]),
    ]


def show_job(job_id: str, *, as_json: bool) -> int:
    job = Client.here().get(f"/jobs/{job_id}")
    put(job, describe(job), as_json=as_json)
    return FINE


def describe(job: dict[str, Any]) -> Iterator[str]:
    yield _line(job)
    if job["last_error"]:
        error = job["last_error"]
        yield f"last error[{error['code']}] at {error['at']}: {error['message']}"
    yield f"watermark {show(job['watermark'])}, {_pressure(job['backpressure'])}"
    if job["recommendation"]:
        yield f"advice: parallelism {job['recommendation']['parallelism']}: {job['recommendation']['reason']}"
    yield from (f"alert[{alert['name']}]: {alert['message']}" for alert in job["alerts"])
    yield ""
    yield from table(("source", "partition", "watermark", "newest event", "offset", "lag", "idle"), _partitions(job))
    yield ""
    operators = ("id", "type", "rows_in", "rows_out", "events_per_second", "late", "state_rows", "busy")
    names = ("operator", "type", "rows in", "rows out", "per second", "late", "state rows", "busy")
    yield from table(names, [[each[name] for name in operators] for each in job["operators"]])
    yield ""
    sinks = ("id", "committed_epoch", "rows", "last_commit_at")
    yield from table(
        ("sink", "epoch", "rows", "last commit"), [[each[name] for name in sinks] for each in job["sinks"]]
    )


def _partitions(job: dict[str, Any]) -> Iterator[list[object]]:
    fields = ("partition", "watermark", "max_event_time", "offset", "lag", "idle")
    for id_, source in job["sources"].items():
        for partition in source["partitions"]:
            yield [id_, *(partition[name] for name in fields)]


def _pressure(pressure: dict[str, Any]) -> str:
    lag = "" if pressure["lag_events"] is None else f", {pressure['lag_events']} events wait"
    eta = "" if not pressure["eta_seconds"] else f", caught up in {pressure['eta_seconds']:.0f} s"
    cause = "" if pressure["cause"] is None else f", held up by {pressure['cause']}"
    return f"backpressure {pressure['level']}{lag}{eta}{cause}"


def act(job_id: str, action: str, until: tuple[str, ...], *, wait: bool, as_json: bool) -> int:
    """`stop` and `restart`."""
    client = Client.here()
    return _done(client, client.call("POST", f"/jobs/{job_id}/{action}"), until, wait, as_json)


def rescale(job_id: str, parallelism: int, *, wait: bool, as_json: bool) -> int:
    client = Client.here()
    job = client.call("PATCH", f"/jobs/{job_id}", body={"parallelism": parallelism})
    return _done(client, job, ("RUNNING", *RESTING), wait, as_json)


def cancel(job_id: str, *, savepoint: bool, purge: bool, wait: bool, as_json: bool) -> int:
    client = Client.here()
    query = {"savepoint": savepoint, "purge": purge}
    answer = client.call("DELETE", f"/jobs/{job_id}", query=query)
    if answer is None:
        done = "forgotten" if purge else "had ended already"
        put({"job_id": job_id, "purged": purge}, [f"{job_id}: {done}"], as_json=as_json)
        return FINE
    if wait:
        ended = ("CANCELED", "FAILED", "FINISHED")
        answer["state"] = _followed(client, answer["job_id"], ended)["state"]
    final = f", after savepoint {answer['savepoint_id']}" if answer["savepoint_id"] else ""
    put(answer, [f"{answer['job_id']}: {answer['state']}{final}"], as_json=as_json)
    return FINE


def upgrade(path: Path, *, dry_run: bool, accept: list[str], wait: bool, as_json: bool) -> int:
    from tidemark.compiler.compile import compile_job

    client, definition = Client.here(), read_job_file(path)
    name = compile_job(definition).definition.name
    answer = client.call("PUT", f"/jobs/{name}", query={"dry_run": dry_run, "accept": accept}, definition=definition)
    if wait and not dry_run:
        answer["state"] = _followed(client, answer["job_id"], ("RUNNING", *RESTING))["state"]
    put(answer, [f"{answer['job_id']}: {answer['state']}", *_verdict_lines(answer)], as_json=as_json)
    return _verdict(answer)


def _verdict_lines(answer: dict[str, Any]) -> Iterator[str]:
    for query in answer["queries"]:
        yield f"query {query['id']}: {_fate(query)}: {query['reason']}"
        yield from (f"  {each['id']}: {_fate(each)}: {each['reason']}" for each in query["operators"])


def _fate(verdict: dict[str, Any]) -> str:
    events = verdict["events"]
    return verdict["verdict"] if events is None else f"{verdict['verdict']} (by replay of {counted(events, 'event')})"


def logs(job_id: str, tail: int, *, as_json: bool) -> int:
    answer = Client.here().get(f"/jobs/{job_id}/logs", tail=tail)
    put(answer, answer["lines"], as_json=as_json)
    return FINE


def watermark(job_id: str, *, as_json: bool) -> int:
    answer = Client.here().get(f"/jobs/{job_id}/watermark")
    put(answer, watermark_words(answer), as_json=as_json)
    return FINE


def watermark_words(answer: dict[str, Any]) -> Iterator[str]:
    for chain in answer["queries"]:
        yield chain["words"]
        yield from (f"  {id_}: {show(mark)}" for id_, mark in chain["sources"].items())
        yield from (f"  waiting: {window['words']}" for window in chain["waiting"])


def _done(client: Client, job: dict[str, Any], until: tuple[str, ...], wait: bool, as_json: bool) -> int:
    if wait:
        job = _followed(client, job["job_id"], until)
    put(job, [_line(job)], as_json=as_json)
    return _verdict(job)


def _followed(client: Client, job_id: str, until: tuple[str, ...]) -> dict[str, Any]:
    """The job when it has reached one of the states, and what is wanted of it too."""
    while True:
        job: dict[str, Any] = client.get(f"/jobs/{job_id}")
        if job["state"] in until:
            return job
        time.sleep(POLL_SECONDS)


def _line(job: dict[str, Any]) -> str:
    parallelism = "" if job["parallelism"] is None else f", parallelism {job['parallelism']}"
    return f"{job['job_id']}: {job['state']} since {job['since']} (attempt {job['attempt']}{parallelism})"


def _verdict(job: dict[str, Any]) -> int:
    return FAILED if job["state"] == "FAILED" else FINE
