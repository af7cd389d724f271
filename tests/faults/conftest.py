"""What the recovery tests share: the run that nothing disturbs, which all others must equal."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from faults import workload
from faults.running import Run, Start, commits
from faults.undisturbed import Undisturbed
from support import quick_java
from support.measured import MEASURED


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Undisturbed:
    """Run once for all workers: whoever comes first runs it, whoever comes meanwhile waits."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "undisturbed.json"
    with open(shared, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not shared.stat().st_size:
            json.dump(asdict(_run_undisturbed(tmp_path_factory.mktemp("undisturbed"))), file)
            file.flush()
        file.seek(0)
        return Undisturbed(**json.load(file))


def _run_undisturbed(folder: Path) -> Undisturbed:
    workload.prepare(folder)
    with ended(Run(folder, "--until-drained")) as run:
        outcome = run.wait()
    assert outcome.code == 0, run.words
    assert run.attempts() == [1]
    return Undisturbed(workload.contents(folder), outcome.summary, commits(folder)[0] - run.started_at)


@pytest.fixture
def system_temporary(tmp_path: Path) -> Path:
    """What the runs of `start` take for the system's temporary folder."""
    folder = tmp_path / "system"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path: Path, system_temporary: Path) -> Iterator[Start]:
    """Starts runs of the workload in the test's folder; none of them outlives the test."""
    workload.prepare(tmp_path)
    java = f"{quick_java.QUICK_START} -Djava.io.tmpdir={system_temporary}"
    variables = {"TMPDIR": str(system_temporary), quick_java.VARIABLE: java}

    def started(*options: str, failpoints: str = "") -> Run:
        return stack.enter_context(ended(Run(tmp_path, *options, failpoints=failpoints, variables=variables)))

    with ExitStack() as stack:
        yield started


@contextmanager
def ended(run: Run) -> Iterator[Run]:
    try:
        yield run
    finally:
        run.end()


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Tells a measurement at the end of the run, even when the test passes."""
    return lambda text: record_property(MEASURED, text)
