"""SIGKILL of the driver at every failpoint, one attempt after the other, each in another epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faults.running import Start, commits, driver_log
from faults.undisturbed import Undisturbed

from tidemark.data_plane.failpoints import POINTS

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

# The one with the most sinks.
QUERY = "per_minute"
RESTART = "the driver was killed by SIGKILL; a new attempt starts"


def test_a_job_killed_at_every_failpoint_gives_the_undisturbed_results(
    tmp_path: Path, start: Start, undisturbed: Undisturbed, report: Callable[[str], None]
) -> None:
    failpoints = [f"{QUERY}:{point}@{epoch}" for epoch, point in enumerate(POINTS)]
    chosen = ",".join(f"{point}#{attempt}" for attempt, point in enumerate(failpoints, start=1))
    run = start("--until-drained", failpoints=chosen)
    outcome = run.wait()

    assert [point for point in failpoints if f"struck at {point}" in driver_log(tmp_path)] == failpoints
    assert run.attempts() == list(range(1, len(POINTS) + 2))
    kills = run.said(RESTART)
    assert len(kills) == len(POINTS)
    undisturbed.assert_equalled_by(tmp_path, outcome)
    recoveries = [recovery_seconds(tmp_path, killed) for killed in kills]
    for point, seconds in zip(failpoints, recoveries, strict=True):
        report(f"killed at {point}: next epoch committed after {seconds:.1f} s")
    assert max(recoveries) <= undisturbed.recovery_limit


def recovery_seconds(folder: Path, killed: float) -> float:
    return min(at for at in commits(folder) if at > killed) - killed
