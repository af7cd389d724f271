"""Jobs from submission to their end, through a real server, with drivers that do as they are told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from control_plane.serving import SERVE, Script, Server, Step, running_server
from support.processes import is_alive
from support.waiting import wait_until

pytestmark = pytest.mark.faults


def test_a_submitted_job_runs_and_shows_what_its_driver_says(server: Server) -> None:
    job_id = server.submit("shown")
    job = server.wait_for_epoch(job_id)
    assert (job["state"], job["desired_state"], job["attempt"], job["restarts"]) == ("RUNNING", "RUNNING", 1, 0)
    assert server.states(job_id) == ["CREATED", "STARTING", "RUNNING"]
    assert job["watermark"] == "2026-01-01T00:00:10Z"
    assert job["epoch"] == {"id": 7, "duration_ms": 100, "events": 10}
    assert job["checkpoint"]["bytes"] == 1000
    assert job["queries"] == [{"id": "per_min", "epoch": 7, "watermark": "2026-01-01T00:00:10Z"}]
    assert job["operators"][0]["state_rows"] == 3
    assert job["sources"]["orders"]["partitions"][1]["lag"] == 7
    assert job["sinks"][0]["committed_epoch"] == 7


def test_a_job_stops_at_its_epochs_end_and_restarts_with_a_new_attempt(server: Server) -> None:
    job_id = server.submit("stopped")
    server.wait_for(job_id, "RUNNING")
    assert server.http.post(f"/jobs/{job_id}/stop").status_code == 202
    stopped = server.wait_for(job_id, "STOPPED")
    assert (stopped["desired_state"], stopped["epoch"]["id"]) == ("STOPPED", 7)
    assert [each["state"] for each in server.diary("ended", "stopped")] == ["STOPPED"]
    assert server.http.post(f"/jobs/{job_id}/restart").status_code == 202
    assert server.wait_for(job_id, "RUNNING")["attempt"] == 2
    assert server.states(job_id)[3:] == ["STOPPING", "STOPPED", "STARTING", "RUNNING"]
    first, second = server.diary("start", "stopped")
    assert first["spec"]["lineage"] == second["spec"]["lineage"]
    assert first["spec"]["control"]["token"] != second["spec"]["control"]["token"]


def test_a_running_job_restarts_after_a_stop(server: Server) -> None:
    job_id = server.submit("again")
    server.wait_for(job_id, "RUNNING")
    assert server.http.post(f"/jobs/{job_id}/restart").status_code == 202
    wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
    assert server.states(job_id)[3:] == ["STOPPING", "STOPPED", "STARTING", "RUNNING"]


def test_a_job_may_wait_for_its_first_start(server: Server) -> None:
    job_id = server.submit("waiting", start=False)
    assert server.job(job_id)["state"] == "CREATED"
    assert server.http.post(f"/jobs/{job_id}/restart").status_code == 202
    server.wait_for(job_id, "RUNNING")


def test_cancel_ends_a_job_and_purge_forgets_it(server: Server) -> None:
    job_id = server.submit("gone")
    server.wait_for(job_id, "RUNNING")
    assert server.http.delete(f"/jobs/{job_id}", params={"purge": True}).status_code == 409
    assert server.http.delete(f"/jobs/{job_id}").status_code == 202
    server.wait_for(job_id, "CANCELED")
    assert server.http.delete(f"/jobs/{job_id}").status_code == 204
    assert server.http.post(f"/jobs/{job_id}/restart").status_code == 409
    assert (server.folder / ".tidemark/jobs" / job_id).exists()
    assert server.http.delete(f"/jobs/{job_id}", params={"purge": True}).status_code == 204
    assert server.http.get(f"/jobs/{job_id}").status_code == 404
    assert not (server.folder / ".tidemark/jobs" / job_id).exists()


def test_a_job_created_but_never_started_can_be_canceled(server: Server) -> None:
    job_id = server.submit("unborn", start=False)
    assert server.http.delete(f"/jobs/{job_id}").status_code == 202
    server.wait_for(job_id, "CANCELED")
    assert server.diary("start", "unborn") == []


def test_a_deaf_driver_is_killed_when_its_job_is_canceled(home: Path) -> None:
    with running_server(home, {"*": {"*": [["refuse_commands"], ["started"], ["child"], ["deaf"]]}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        server.http.delete(f"/jobs/{job_id}")
        server.wait_for(job_id, "CANCELED")
        assert "did not stop within" in server.causes(job_id)[-1]
        assert not is_alive(server.diary("start")[0]["pid"])
        assert not is_alive(server.diary("child")[0]["child"])


def test_a_bounded_job_finishes(home: Path) -> None:
    with running_server(home, {"*": {"*": [["started"], ["epoch", 3], ["ended", "FINISHED"]]}}) as server:
        job_id = server.submit()
        job = server.wait_for(job_id, "FINISHED")
        assert job["epoch"]["id"] == 3
        assert server.submit() != job_id


def test_a_killed_driver_is_replaced_and_the_crash_recorded(home: Path) -> None:
    with running_server(home) as server:
        job_id = server.submit()
        server.wait_for_epoch(job_id)
        os.kill(server.diary("start")[0]["pid"], signal.SIGKILL)
        wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
        assert server.job(job_id)["restarts"] == 1
        assert server.causes(job_id, "crash") == ["the driver was killed by SIGKILL"]
        assert server.states(job_id)[3:] == ["RECOVERING", "RUNNING"]


def test_a_silent_driver_is_killed_fenced_and_replaced(home: Path) -> None:
    script: Script = {"*": {"1": [["started"], ["epoch", 1], ["mute"]], "*": SERVE}}
    with running_server(home, script, {"heartbeat": 1.0, "own_start": 1.5}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        job = server.wait_for(job_id, "RECOVERING", deadline=10)
        server.wait_for(job_id, "RUNNING")
        assert "no heartbeat" in job["last_error"]["message"]
        assert not is_alive(server.diary("start")[0]["pid"])


def test_a_driver_that_never_speaks_is_given_up_on(home: Path) -> None:
    with running_server(home, {"*": {"1": [["never_speak"]], "*": SERVE}}, {"driver_start": 1.0}) as server:
        job_id = server.submit()
        wait_until(lambda: server.job(job_id)["attempt"] == 2)
        assert "no heartbeat within 1 s" in server.causes(job_id, "crash")[0]


def test_repeated_crashes_fail_the_job_with_the_first_error(home: Path) -> None:
    first: list[Step] = [
        ["started"],
        ["failed", "sink_failed", "external", "restart", "the table is gone"],
        ["exit", 1],
    ]
    with running_server(home, {"*": {"1": first, "*": [["exit", 9]]}}) as server:
        job_id = server.submit()
        job = server.wait_for(job_id, "FAILED")
        assert job["attempt"] == 5
        assert job["last_error"]["code"] == "sink_failed"
        assert job["last_error"]["message"] == "the table is gone"
        assert job["last_error"]["operator"] == "out"
        assert server.causes(job_id, "crash")[1:] == ["the driver ended with exit code 9 and no last word"] * 4
        assert [alert["name"] for alert in job["alerts"]] == []
        server.script({"*": {"*": SERVE}})
        assert server.http.post(f"/jobs/{job_id}/restart").status_code == 202
        server.wait_for(job_id, "RUNNING")


def test_a_committed_epoch_ends_a_row_of_crashes(home: Path) -> None:
    crash: list[Step] = [["started"], ["epoch", 1], ["kill"]]
    script: Script = {"*": {**{str(attempt): crash for attempt in range(1, 8)}, "*": SERVE}}
    with running_server(home, script) as server:
        job_id = server.submit()
        wait_until(lambda: server.job(job_id)["attempt"] == 8 and server.job(job_id)["state"] == "RUNNING", 40)
        assert server.job(job_id)["restarts"] == 7
        assert "restarts" in [alert["name"] for alert in server.job(job_id)["alerts"]]


def test_an_epoch_that_nobody_heard_of_ends_a_row_of_crashes(home: Path) -> None:
    """Each attempt finds one more epoch than the one before: it was committed, and its driver killed at once."""
    crashes: dict[str, list[Step]] = {str(n): [["recovered", n], ["started"], ["kill"]] for n in range(1, 8)}
    with running_server(home, {"*": {**crashes, "*": SERVE}}) as server:
        job_id = server.submit()
        wait_until(lambda: server.job(job_id)["attempt"] == 8 and server.job(job_id)["state"] == "RUNNING", 40)
        assert server.job(job_id)["restarts"] == 7


def test_an_epoch_that_was_known_ends_no_row_of_crashes(home: Path) -> None:
    """Not even when an attempt in between dies before it has looked at the disk."""
    seen: list[Step] = [["recovered", 4], ["started"], ["kill"]]
    unseen: list[Step] = [["recovered", None], ["started"], ["kill"]]
    with running_server(home, {"*": {"2": unseen, "4": unseen, "*": seen}}) as server:
        job_id = server.submit()
        assert server.wait_for(job_id, "FAILED")["attempt"] == 5


def test_a_failure_that_the_user_must_mend_is_not_tried_again(home: Path) -> None:
    steps: list[Step] = [["failed", "sink_mismatch", "user", "never", "column x is missing"], ["exit", 1]]
    with running_server(home, {"*": {"*": steps}}) as server:
        job_id = server.submit()
        job = server.wait_for(job_id, "FAILED")
        assert (job["attempt"], job["restarts"]) == (1, 0)
        assert server.states(job_id) == ["CREATED", "STARTING", "FAILING", "FAILED"]


@pytest.mark.parametrize("action", ["stop", "cancel"])
def test_a_driver_that_fails_on_the_way_to_rest_does_not_matter(home: Path, action: str) -> None:
    failing: list[Step] = [["refuse_commands"], ["started"], ["sleep", 0.7]]
    failing += [["failed", "engine_failed", "internal", "restart", "the JVM is gone"], ["exit", 1]]
    with running_server(home, {"*": {"*": failing}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        call = server.http.post if action == "stop" else server.http.delete
        call(f"/jobs/{job_id}/stop" if action == "stop" else f"/jobs/{job_id}")
        server.wait_for(job_id, "STOPPED" if action == "stop" else "CANCELED")
        assert server.get("/readyz") == {"status": "ok"}


def test_a_driver_stopped_from_outside_is_started_again(home: Path) -> None:
    with running_server(home, {"*": {"1": [["started"], ["ended", "STOPPED"]], "*": SERVE}}) as server:
        job_id = server.submit()
        wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
        assert server.causes(job_id, "crash") == ["the driver was stopped from outside"]
