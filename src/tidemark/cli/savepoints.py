"""`savepoints …`, `jobs savepoint` and `state get`: what is kept, and what is in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tidemark.cli.client import Client
from tidemark.cli.failures import FAILED, FINE
from tidemark.cli.tables import put, show, table

POLL_SECONDS = 0.3
_NOT_COLUMNS = ("values", "not_shown")
LIST = ("savepoint", "job", "state", "created", "watermark", "bytes")


def take(job_id: str, *, wait: bool, as_json: bool) -> int:
    client = Client.here()
    made = client.call("POST", f"/jobs/{job_id}/savepoint")
    if not wait:
        put(made, [f"{made['savepoint_id']}: IN_PROGRESS"], as_json=as_json)
        return FINE
    while (found := client.get(made["status_url"]))["state"] == "IN_PROGRESS":
        time.sleep(POLL_SECONDS)
    put(found, describe(found), as_json=as_json)
    return FINE if found["state"] == "COMPLETED" else FAILED


def list_savepoints(job_id: str | None, *, as_json: bool) -> int:
    path = "/savepoints" if job_id is None else f"/jobs/{job_id}/savepoints"
    found = Client.here().get(path)["savepoints"]
    fields = ("savepoint_id", "job_id", "state", "created_at", "watermark", "bytes")
    put(found, table(LIST, [[each[name] for name in fields] for each in found]), as_json=as_json)
    return FINE


def show_savepoint(savepoint_id: str, *, as_json: bool) -> int:
    found = Client.here().get(f"/savepoints/{savepoint_id}")
    put(found, describe(found), as_json=as_json)
    return FINE


def describe(savepoint: dict[str, Any]) -> Iterator[str]:
    yield f"{savepoint['savepoint_id']}: {savepoint['state']}"
    if savepoint["failure"]:
        yield f"  error[{savepoint['failure']['code']}]: {savepoint['failure']['message']}"
    for name in ("job_id", "created_at", "completed_at", "epoch", "watermark", "parallelism", "bytes", "checksum"):
        yield f"  {name.replace('_', ' ')}: {show(savepoint[name])}"
    yield f"  location: {savepoint['location']}"


def delete(savepoint_id: str, *, as_json: bool) -> int:
    Client.here().call("DELETE", f"/savepoints/{savepoint_id}")
    put({"savepoint_id": savepoint_id, "deleted": True}, [f"{savepoint_id}: deleted"], as_json=as_json)
    return FINE


def get_state(job_id: str, operator: str, key: str, *, as_json: bool) -> int:
    answer = Client.here().get(f"/jobs/{job_id}/state/{operator}", key=key)
    put(answer, _state_lines(answer), as_json=as_json)
    return FINE


def _state_lines(answer: dict[str, Any]) -> Iterator[str]:
    yield f"{answer['operator']} as of epoch {show(answer['epoch'])}, {show(answer['age_ms'])} ms ago"
    rows = [{**entry, **entry["values"]} for entry in answer["entries"]]
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in _NOT_COLUMNS]
    if rows:
        yield from table(columns, [[row.get(name) for name in columns] for row in rows])
    else:
        yield "nothing is kept for this key"
