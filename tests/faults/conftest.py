"""What the recovery tests share: the run that nothing disturbs, which all others must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from faults import workload
from faults.running import Run, Start, commits
from faults.undisturbed import Undisturbed


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    workload.prepare(folder)
    with ended(Run(folder, "--until-drained")) as run:
        outcome = run.wait()
    assert outcome.code == 0, run.words
    assert run.attempts() == [1]
    return Undisturbed(workload.contents(folder), outcome.summary, commits(folder)[0] - run.started_at)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts runs of the workload in the test's folder; none of them outlives the test."""
    workload.prepare(tmp_path)
    with ExitStack() as stack:
        yield lambda *options, failpoints="": stack.enter_context(ended(Run(tmp_path, *options, failpoints=failpoints)))


@contextmanager
def ended(run: Run) -> Iterator[Run]:
    try:
        yield run
    finally:
        run.end()


@pytest.fixture
def report(capfd: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a measurement even when the test passes."""

    def show(text: str) -> None:
        with capfd.disabled():
            print(f"\n  {text}", flush=True)

    return show
