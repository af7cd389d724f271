"""How fast the API answers with many jobs. The best of a few rounds counts: the machine may be busy with other things."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

from control_plane.serving import RUNS, Server, running_server

JOBS = 50
RUNNING = 4


def seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def p99(server: Server, job_id: str) -> float:
    """Over 200 requests at no more than 100 a second."""
    taken: list[float] = []
    for _ in range(200):
        taken.append(seconds(lambda: server.job(job_id)))
        time.sleep(max(0.0, 0.01 - taken[-1]))
    return quantiles(taken, n=100)[98]


def test_fifty_jobs_are_listed_and_one_is_shown_within_a_tenth_of_a_second(home: Path) -> None:
    with running_server(home, RUNS) as server:
        running = [server.submit(f"running-{number}") for number in range(RUNNING)]
        for number in range(JOBS - RUNNING):
            server.submit(f"resting-{number}", start=False)
        for job_id in running:
            server.wait_for_epoch(job_id)
        assert len(server.get("/jobs", limit=500)["jobs"]) == JOBS
        listed = min(seconds(lambda: server.get("/jobs", limit=500)) for _ in range(5))
        assert listed < 0.1, f"{listed * 1000:.0f} ms"
        shown = min(p99(server, running[0]) for _ in range(3))
        assert shown < 0.1, f"{shown * 1000:.0f} ms"
        print(f"listed in {listed * 1000:.0f} ms, p99 of a job {shown * 1000:.0f} ms")
