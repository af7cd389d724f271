"""What a killed driver cannot clean up is cleaned by the next one: nothing stays in the system's temporary folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from faults import workload
from faults.conftest import ended
from faults.running import Run, job_folder
from support import quick_java

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_driver_that_was_killed_and_started_again_leaves_no_temporary_files(tmp_path: Path) -> None:
    system, folder = tmp_path / "system", tmp_path / "work"
    system.mkdir()
    folder.mkdir()
    workload.prepare(folder)
    scratch = job_folder(folder) / "scratch"
    variables = {"TMPDIR": str(system), quick_java.VARIABLE: f"{quick_java.QUICK_START} -Djava.io.tmpdir={system}"}
    with ended(Run(folder, variables=variables)) as run:
        run.wait_for_commits(1)
        artifacts = set(scratch.glob("artifacts-*"))
        os.kill(run.driver(), signal.SIGKILL)
        run.wait_for_attempt(2)
        run.wait_for_commits(1)
        run.signal(signal.SIGINT)
        outcome = run.wait()
    assert (outcome.code, run.attempts()) == (0, [1, 2]), run.words
    assert list(system.iterdir()) == []
    assert artifacts
    assert not any(each.exists() for each in artifacts)
