"""Savepoints through the API: asked of the driver, checked, listed, restored, deleted."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import httpx
from control_plane.serving import SERVE, YAML, Server, job_text, running_server
from support.waiting import wait_until


def taken(server: Server, job_id: str) -> dict[str, Any]:
    answer = server.http.post(f"/jobs/{job_id}/savepoint")
    assert answer.status_code == 202
    assert answer.json()["status_url"] == f"/savepoints/{answer.json()['savepoint_id']}"
    return done(server, answer.json()["savepoint_id"])


def done(server: Server, savepoint_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        found: dict[str, Any] = server.get(f"/savepoints/{savepoint_id}")
        return found if found["state"] != "IN_PROGRESS" else None

    return wait_until(ended, 10) or {}


def submit(server: Server, text: str, **query: Any) -> httpx.Response:
    return server.http.post("/jobs", content=text, headers=YAML, params=query)


def folder(savepoint: dict[str, Any]) -> Path:
    return Path(savepoint["location"].removeprefix("file://"))


def test_a_savepoint_is_listed_with_what_its_manifest_says(server: Server) -> None:
    job_id = server.submit("saved")
    assert server.http.post(f"/jobs/{job_id}/savepoint").status_code in (202, 409)
    server.wait_for(job_id, "RUNNING")
    found = taken(server, job_id)
    assert (found["state"], found["epoch"], found["bytes"], found["parallelism"]) == ("COMPLETED", 7, 5, 2)
    assert len(found["checksum"]) == 64
    listed = server.get(f"/jobs/{job_id}/savepoints")["savepoints"]
    assert found in listed
    assert found in server.get("/savepoints")["savepoints"]


def test_only_a_running_job_writes_one(server: Server) -> None:
    job_id = server.submit("resting", start=False)
    answer = server.http.post(f"/jobs/{job_id}/savepoint")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


def test_a_deleted_savepoint_is_gone_with_its_files(server: Server) -> None:
    job_id = server.submit("deleted")
    server.wait_for(job_id, "RUNNING")
    found = taken(server, job_id)
    assert folder(found).is_dir()
    assert server.http.delete(f"/savepoints/{found['savepoint_id']}").status_code == 204
    assert not folder(found).exists()
    assert server.http.get(f"/savepoints/{found['savepoint_id']}").status_code == 404


def test_a_savepoint_without_a_manifest_is_not_complete(home: Path) -> None:
    lie = {"ok": True, "result": {"epoch": 7}}
    with running_server(home, {"*": {"*": [["savepoint_answer", lie], *SERVE]}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        found = taken(server, job_id)
        assert found["state"] == "FAILED"
        assert "there is no savepoint" in found["failure"]["message"]


def test_a_savepoint_dies_with_its_driver(home: Path) -> None:
    """A driver that does nothing it is told is asked for one, and killed."""
    with running_server(
        home, {"*": {"1": [["started"], ["epoch", 1], ["refuse_commands"], ["deaf"]], "*": SERVE}}
    ) as server:
        job_id = server.submit()
        server.wait_for_epoch(job_id)
        asked = server.http.post(f"/jobs/{job_id}/savepoint").json()["savepoint_id"]
        assert server.http.delete(f"/savepoints/{asked}").status_code == 409
        os.kill(server.diary("start")[0]["pid"], signal.SIGKILL)
        found = done(server, asked)
        assert (found["state"], found["failure"]["message"]) == ("FAILED", "the driver was killed by SIGKILL")


def test_cancel_after_a_final_savepoint(server: Server) -> None:
    job_id = server.submit("final")
    server.wait_for(job_id, "RUNNING")
    answer = server.http.delete(f"/jobs/{job_id}", params={"savepoint": True})
    assert answer.status_code == 202
    assert done(server, answer.json()["savepoint_id"])["state"] == "COMPLETED"
    server.wait_for(job_id, "CANCELED")
    assert server.states(job_id)[-2:] == ["CANCELING", "CANCELED"]
    command = server.diary("command", "final")[0]["command"]
    assert (command["kind"], command["then_stop"]) == ("savepoint", True)


def test_a_final_savepoint_that_fails_leaves_the_job_running(home: Path) -> None:
    failure = {"code": "disk_full", "domain": "external", "retry": "never", "message": "no space left"}
    no = {"ok": False, "failure": failure}
    with running_server(home, {"*": {"1": [["savepoint_answer", no], *SERVE], "*": SERVE}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        answer = server.http.delete(f"/jobs/{job_id}", params={"savepoint": True})
        found = done(server, answer.json()["savepoint_id"])
        assert (found["state"], found["failure"]["code"]) == ("FAILED", "disk_full")
        wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")


def test_a_restore_starts_a_new_job_with_a_new_lineage(server: Server) -> None:
    job_id = server.submit("source-of-it")
    server.wait_for(job_id, "RUNNING")
    found = taken(server, job_id)
    text = job_text("restored").replace("name: restored", "name: restored\nparallelism: 4")
    refused = submit(server, text, from_savepoint=found["savepoint_id"])
    assert refused.status_code == 409
    assert "late, bad" in refused.json()["error"]["message"]
    assert "repeat_output" in refused.json()["error"]["hint"]
    made = submit(server, text, from_savepoint=found["savepoint_id"], accept="repeat_output")
    assert made.status_code == 201, made.text
    server.wait_for(made.json()["job_id"], "RUNNING")
    (start,) = server.diary("start", "restored")
    assert start["spec"]["prepare"] == {"kind": "restore", "location": found["location"], "parallelism": 4}
    assert start["spec"]["lineage"] != server.diary("start", "source-of-it")[0]["spec"]["lineage"]


def test_after_a_final_savepoint_nothing_would_be_repeated(server: Server) -> None:
    job_id = server.submit("moved")
    server.wait_for_epoch(job_id)
    savepoint = server.http.delete(f"/jobs/{job_id}", params={"savepoint": True}).json()["savepoint_id"]
    server.wait_for(job_id, "CANCELED")
    made = submit(server, job_text("moved"), from_savepoint=savepoint)
    assert made.status_code == 201, made.text


def test_a_damaged_savepoint_is_refused_before_anything_is_made(server: Server) -> None:
    job_id = server.submit("damaged")
    server.wait_for(job_id, "RUNNING")
    found = taken(server, job_id)
    (folder(found) / "queries/x").write_bytes(b"stale")
    refused = submit(server, job_text("copy"), from_savepoint=found["savepoint_id"], accept="repeat_output")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "savepoint_damaged")
    assert submit(server, job_text("copy"), from_savepoint="sp-none").status_code == 404
    assert server.http.get("/jobs/copy").status_code == 404
