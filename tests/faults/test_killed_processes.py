"""The other ways to die: the JVM alone, the supervisor with a frozen driver, the supervisor alone, Ctrl-C.

What a killed driver cannot clean up is cleaned by the next one: nothing stays in the system's temporary folder.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.running import Run, Start, commits, job_folder, processes
from faults.undisturbed import Undisturbed
from support.processes import freeze, is_alive
from support.waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_run_goes_on_after_the_death_of_any_of_its_processes(
    tmp_path: Path,
    system_temporary: Path,
    start: Start,
    undisturbed: Undisturbed,
    report: Callable[[str], None],
) -> None:
    first = start("--until-drained")
    first.wait_for_commits(2)
    left_behind = set((job_folder(tmp_path) / "scratch").glob("artifacts-*"))
    _kill_the_jvm(first, undisturbed, report)
    frozen = _freeze_the_driver_and_kill_the_supervisor(first)

    second = start("--until-drained")
    second.wait_for_attempt(3)
    assert not any(is_alive(pid) for pid in frozen)
    _kill_the_supervisor(second)

    third = start()
    _interrupt(third)

    last = start("--until-drained")
    outcome = last.wait()
    assert last.attempts() == [5]
    undisturbed.assert_equalled_by(tmp_path, outcome)
    assert left_behind
    assert not any(each.exists() for each in left_behind)
    assert list(system_temporary.iterdir()) == []


def _kill_the_jvm(run: Run, undisturbed: Undisturbed, report: Callable[[str], None]) -> None:
    _refuse_a_second_run(run.folder)
    driver = run.driver()
    os.kill(run.jvm(), signal.SIGKILL)
    killed = time.time()
    run.wait_for_attempt(2)
    run.wait_for_commits(1)
    seconds = min(at for at in commits(run.folder) if at > killed + 0.5) - killed
    report(f"JVM killed: next epoch committed after {seconds:.1f} s")
    assert run.said("the Java process behind Spark is gone")
    assert not is_alive(driver)
    assert seconds <= undisturbed.recovery_limit


def _refuse_a_second_run(folder: Path) -> None:
    refused = Run(folder, "--until-drained").wait()
    assert refused.code == 2
    assert refused.summary["error"]["code"] == "already_running"


def _freeze_the_driver_and_kill_the_supervisor(run: Run) -> list[int]:
    """A frozen driver cannot see that its supervisor is gone; the next run has to end it."""
    frozen = [run.driver(), run.jvm()]
    freeze(run.driver())
    run.signal(signal.SIGKILL)
    assert run.wait().code == -signal.SIGKILL
    assert all(is_alive(pid) for pid in frozen)
    return frozen


def _kill_the_supervisor(run: Run) -> None:
    run.wait_for_commits(1)
    run.signal(signal.SIGKILL)
    assert run.wait().code == -signal.SIGKILL
    wait_until(lambda: not processes(run.folder), deadline=20)


def _interrupt(run: Run) -> None:
    """Stops between two epochs: what was begun is committed by every query."""
    run.wait_for_attempt(4)
    run.wait_for_commits(1)
    run.signal(signal.SIGINT)
    outcome = run.wait()
    assert (outcome.code, outcome.summary["state"]) == (0, "STOPPED")
    assert run.attempts() == [4]
    assert processes(run.folder) == []
