"""SIGKILL of the driver at every failpoint, one attempt after the other, each in another epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faults.running import Start, commits, driver_log
from faults.undisturbed import Undisturbed

from tidemark.data_plane.failpoints import POINTS

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

# Of the query with the most sinks. Some strike the epoch that the attempt before died in, so that a replay dies too.
EPOCHS = {
    "after_log": 0,
    "mid_sink": 0,
    "before_sink_commit": 1,
    "after_sink_commit": 1,
    "between_sinks": 2,
    "after_epoch_record": 2,
    "after_epoch_commit": 3,
}
RESTART = "the driver was killed by SIGKILL; a new attempt starts"


def test_every_failpoint_has_its_turn() -> None:
    assert tuple(EPOCHS) == POINTS


def test_a_job_killed_at_every_failpoint_gives_the_undisturbed_results(
    tmp_path: Path, start: Start, undisturbed: Undisturbed, report: Callable[[str], None]
) -> None:
    failpoints = [f"per_minute:{point}@{epoch}" for point, epoch in EPOCHS.items()]
    chosen = ",".join(f"{point}#{attempt}" for attempt, point in enumerate(failpoints, start=1))
    run = start("--until-drained", failpoints=chosen)
    outcome = run.wait()

    assert [point for point in failpoints if f"struck at {point}" in driver_log(tmp_path)] == failpoints
    assert run.attempts() == list(range(1, len(POINTS) + 2))
    kills = run.said(RESTART)
    assert len(kills) == len(POINTS)
    undisturbed.assert_equalled_by(tmp_path, outcome)
    recoveries = recovery_seconds(kills, commits(tmp_path))
    report(
        f"killed {len(kills)} times; an epoch was committed {', '.join(f'{each:.1f}' for each in recoveries)} s later"
    )
    assert max(recoveries) <= undisturbed.recovery_limit


def recovery_seconds(kills: list[float], commits: list[float]) -> list[float]:
    """From each kill to the next committed epoch, unless another kill came before that."""
    after = [(killed, min(at for at in commits if at > killed)) for killed in kills]
    return [back - killed for killed, back in after if not any(killed < other < back for other in kills)]
