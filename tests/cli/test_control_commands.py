"""The commands that need a server, as a user types them, against a real server with scripted drivers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.driving import Answer, tidemark
from control_plane.serving import Server, job_text, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def command(server: Server, *words: str, **environment: str) -> Answer:
    return tidemark(server.folder, *words, driver=None, **environment)


def job_file(server: Server, name: str) -> str:
    path = server.folder / f"{name}.yaml"
    path.write_text(job_text(name))
    return path.name


def submitted(server: Server, name: str) -> str:
    answer = command(server, "jobs", "submit", job_file(server, name), "--wait", "--json")
    assert (answer.code, answer.json["state"]) == (0, "RUNNING"), answer.err
    server.wait_for_epoch(answer.json["job_id"])
    job_id: str = answer.json["job_id"]
    return job_id


def test_a_job_is_submitted_listed_and_shown(server: Server) -> None:
    job_id = submitted(server, "shown")
    listed = command(server, "jobs", "list")
    head, *lines = listed.out.splitlines()
    assert head.split()[:4] == ["JOB", "NAME", "STATE", "ATTEMPT"]
    assert [line.split()[:3] for line in lines if "shown" in line] == [[job_id, "shown", "RUNNING"]]
    assert job_id in [job["job_id"] for job in command(server, "jobs", "list", "--json").json]
    assert command(server, "jobs", "list", "--state", "failed", "--json").json == []
    shown = command(server, "jobs", "show", "shown")
    assert shown.out.startswith(f"{job_id}: RUNNING since ")
    partitions = [line.split() for line in shown.out.splitlines() if line.startswith("orders")]
    assert [line[:3] for line in partitions] == [
        ["orders", "0", "2026-01-01T00:00:10Z"],
        ["orders", "1", "2026-01-01T00:00:40Z"],
    ]
    assert command(server, "jobs", "show", job_id, "--json").json["watermark"] == "2026-01-01T00:00:10Z"


def test_the_watermark_is_explained_in_words(server: Server) -> None:
    submitted(server, "worded")
    words = command(server, "jobs", "watermark", "worded").out
    assert "the watermark of query per_min is 2026-01-01T00:00:10Z: source orders, partition 0 holds it" in words
    assert "an event after 2026-01-01T00:00:15Z on orders, partition 0; else it is idle in 20 s of quiet" in words
    assert "waiting: per_min: 3 windows open; the next ends at 2026-01-01T00:01:00Z" in words
    answer = command(server, "jobs", "watermark", "worded", "--json").json
    assert answer["queries"][0]["partition"] == 0


def test_a_job_is_stopped_restarted_rescaled_and_canceled(server: Server) -> None:
    submitted(server, "moved")
    stopped = command(server, "jobs", "stop", "moved", "--wait")
    assert (stopped.code, ": STOPPED since" in stopped.out) == (0, True)
    restarted = command(server, "jobs", "restart", "moved", "--wait", "--json").json
    assert (restarted["state"], restarted["attempt"]) == ("RUNNING", 2)
    rescaled = command(server, "jobs", "rescale", "moved", "3", "--wait", "--json").json
    assert (rescaled["state"], rescaled["parallelism"]) == ("RUNNING", 3)
    canceled = command(server, "jobs", "cancel", "moved", "--savepoint", "--wait", "--json").json
    assert canceled["state"] == "CANCELED"
    assert command(server, "savepoints", "show", canceled["savepoint_id"], "--json").json["state"] == "COMPLETED"
    assert "had ended already" in command(server, "jobs", "cancel", "moved").out
    assert "forgotten" in command(server, "jobs", "cancel", "moved", "--purge").out
    assert command(server, "jobs", "show", "moved").code == 2


def test_savepoints_are_taken_listed_shown_restored_and_deleted(server: Server) -> None:
    job_id = submitted(server, "saved")
    taken = command(server, "jobs", "savepoint", "saved", "--wait", "--json").json
    assert (taken["state"], taken["epoch"]) == ("COMPLETED", 7)
    listed = command(server, "savepoints", "list", "--job", job_id)
    assert taken["savepoint_id"] in listed.out
    assert taken in command(server, "savepoints", "list", "--json").json
    assert f"location: {taken['location']}" in command(server, "savepoints", "show", taken["savepoint_id"]).out
    file = job_file(server, "copied")
    refused = command(server, "jobs", "submit", file, "--from-savepoint", taken["savepoint_id"])
    assert (refused.code, "repeat_output" in refused.err) == (2, True)
    restored = ("--from-savepoint", taken["savepoint_id"], "--accept", "repeat_output")
    # A savepoint that a job is being restored from cannot be deleted.
    made = command(server, "jobs", "submit", file, *restored, "--wait")
    assert made.code == 0, made.err
    assert "deleted" in command(server, "savepoints", "delete", taken["savepoint_id"]).out
    assert command(server, "savepoints", "show", taken["savepoint_id"]).code == 2


def test_an_upgrade_says_what_becomes_of_the_state(server: Server) -> None:
    submitted(server, "better")
    path = server.folder / "better.yaml"
    path.write_text(job_text("better").replace("amount > 0", "amount > 9"))
    assert "query per_min: kept" in command(server, "jobs", "upgrade", path.name, "--dry-run").out
    done = command(server, "jobs", "upgrade", path.name, "--wait", "--json").json
    assert (done["state"], done["queries"][0]["verdict"]) == ("RUNNING", "kept")
    path.write_text(job_text("better").replace("orders: count()", "orders: count(), all: sum(amount)"))
    shown = command(server, "jobs", "upgrade", path.name, "--dry-run").out
    assert "query per_min: rebuilt (by replay of 0 events): " in shown
    assert "\n  per_min: rebuilt (by replay of 0 events): " in shown


def test_keyed_state_and_logs_are_shown(server: Server) -> None:
    submitted(server, "looked-at")
    found = command(server, "state", "get", "looked-at", "per_min", "berlin")
    assert found.out.splitlines()[0] == "per_min as of epoch 7, 12 ms ago"
    assert found.out.splitlines()[1].split() == ["WINDOW_START", "ORDERS"]
    assert command(server, "state", "get", "looked-at", "per_min", "berlin", "--json").json["epoch"] == 7
    assert command(server, "jobs", "logs", "looked-at", "--json").json["lines"] == []


def test_a_wrong_definition_is_shown_with_its_places_and_not_submitted(server: Server) -> None:
    path = server.folder / "wrong.yaml"
    path.write_text(job_text("wrong").replace("amount > 0", "amont > 0"))
    answer = command(server, "jobs", "submit", path.name)
    assert answer.code == 2
    assert "error[unknown_column]" in answer.err
    dry = command(server, "jobs", "submit", job_file(server, "dry"), "--dry-run")
    assert (dry.code, dry.out) == (0, "dry.yaml: ok, would be submitted as dry\n")


def test_a_server_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    answer = tidemark(tmp_path, "jobs", "list", TIDEMARK_SERVER="http://127.0.0.1:9")
    assert answer.code == 1
    assert "error[server_unreachable]" in answer.err
    assert "tidemark server" in answer.err


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    made = tidemark(tmp_path, "tokens", "create", "--role", "viewer", "--name", "ada", "--days", "3", "--json").json
    with running_server(tmp_path) as server:
        refused = command(server, "jobs", "list")
        assert (refused.code, "error[unauthenticated]" in refused.err) == (2, True)
        assert command(server, "jobs", "list", TIDEMARK_TOKEN=made["token"]).code == 0
        denied = command(server, "jobs", "submit", job_file(server, "x"), TIDEMARK_TOKEN=made["token"])
        assert "error[forbidden]" in denied.err
    listed = tidemark(tmp_path, "tokens", "list")
    assert "ada" in listed.out
    assert made["token"] not in listed.out
    assert tidemark(tmp_path, "tokens", "revoke", made["token_id"]).code == 0
    assert json.loads(tidemark(tmp_path, "tokens", "list", "--json").out) == []
    assert tidemark(tmp_path, "tokens", "create", "--role", "king").code == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_server_command_refuses_to_be_open_to_all(tmp_path: Path, host: str) -> None:
    answer = tidemark(tmp_path, "server", "--host", host, "--port", "0")
    assert (answer.code, answer.out) == (2, "")
    assert "tidemark tokens create" in answer.err
