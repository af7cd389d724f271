"""What the death of a server costs: nothing. Its drivers go on, and the next server finds them again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from control_plane.serving import RUNS, SERVE, Step, running_server
from support.processes import freeze, is_alive
from support.waiting import wait_until

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_drivers_outlive_the_server_and_are_adopted_by_the_next(home: Path, number: signal.Signals) -> None:
    with running_server(home, RUNS) as server:
        jobs = [server.submit(name) for name in ("one", "two")]
        for job_id in jobs:
            server.wait_for_epoch(job_id)
        old, code = server.url, server.end(number)
        assert code == (0 if number == signal.SIGTERM else -9)
        assert "Traceback" not in (home / "server.err").read_text()
        pids = [server.serving(name) for name in ("one", "two")]
        assert [is_alive(pid) for pid in pids] == [True, True]
        server.start()
        assert server.url != old
        for job_id in jobs:
            job = server.wait_for_epoch(job_id)
            assert (job["state"], job["attempt"], job["restarts"]) == ("RUNNING", 1, 0)
        server.http.post(f"/jobs/{jobs[0]}/stop")
        server.wait_for(jobs[0], "STOPPED")
        assert [is_alive(pid) for pid in pids] == [False, True]


def test_an_adopted_driver_is_not_judged_silent_before_it_had_the_time_to_find_the_server(home: Path) -> None:
    with running_server(home, RUNS, {"heartbeat": 0.4, "own_start": 3.0}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        pid = server.serving()
        freeze(pid)
        server.end(signal.SIGKILL)
        server.start()
        server.wait_for(job_id, "RUNNING")
        os.kill(pid, signal.SIGCONT)
        server.wait_for_epoch(job_id)
        assert server.job(job_id)["attempt"] == 1


def test_a_driver_that_died_with_the_server_is_replaced_at_once(home: Path) -> None:
    with running_server(home, RUNS) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        server.end(signal.SIGKILL)
        os.kill(server.serving(), signal.SIGKILL)
        server.start()
        wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
        assert server.causes(job_id, "crash") == ["the driver is gone"]


def test_a_last_word_said_while_the_server_was_away_is_heard_in_the_end(home: Path) -> None:
    steps: list[Step] = [["started"], ["epoch", 2], ["sleep", 1.0], ["ended", "FINISHED"]]
    with running_server(home, {"*": {"*": steps}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        server.end(signal.SIGKILL)
        wait_until(lambda: server.diary("ended"))
        server.start()
        assert server.wait_for(job_id, "FINISHED")["attempt"] == 1


def test_a_stop_asked_for_before_the_server_died_is_carried_out_by_the_next(home: Path) -> None:
    with running_server(home, RUNS) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        pid = server.serving()
        freeze(pid)
        server.http.post(f"/jobs/{job_id}/stop")
        server.end(signal.SIGKILL)
        server.start()
        os.kill(pid, signal.SIGCONT)
        server.wait_for(job_id, "STOPPED")
        assert server.job(job_id)["attempt"] == 1


def test_a_fenced_driver_ends_itself(home: Path) -> None:
    """A driver that was believed dead and comes back is told so, and what it says then is not taken."""
    with running_server(home, {"*": {"*": SERVE}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        spec = server.diary("start")[0]["spec"]
        os.kill(server.serving(), signal.SIGKILL)
        wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
        word = {"kind": "ended", "state": "FINISHED", "epochs": 1, "watermark": None, "total": {}}
        sent = {"seq": 99, "at": "2026-01-01T00:00:00Z", "message": word}
        answer = server.http.post(
            f"/internal/jobs/{job_id}/attempts/1/heartbeat",
            json={"pid": 1, "started_at": "2026-01-01T00:00:00Z", "messages": [sent]},
            headers={"Authorization": f"Bearer {spec['control']['token']}"},
        )
        assert answer.json()["fenced"]
        assert answer.json()["acked_seq"] < 99
        assert server.job(job_id)["state"] == "RUNNING"


def test_one_home_has_one_server(home: Path) -> None:
    with running_server(home, RUNS) as server:
        first = server.process
        with pytest.raises(AssertionError, match="another server uses"):
            server.start()
        assert server.process is not None
        assert server.process.wait(timeout=20) != 0
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.process = first
