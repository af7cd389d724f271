"""One long job, one fault after the other, and the verdict."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from faults.chaos import checks
from faults.chaos.report import Report, Round
from faults.chaos.stage import Stage, staged
from faults.chaos.strikes import FAULTS
from faults.running import PATIENCE
from support.waiting import wait_until

from tidemark.testing.ports import listens

Say = Callable[[str], None]


def schedule(seed: int, rounds: int) -> list[str]:
    """Every fault in turn, in an order of the seed's; then all of them again, in another."""
    chance = Random(seed)
    names: list[str] = []
    while len(names) < rounds:
        names += chance.sample(sorted(FAULTS), len(FAULTS))
    return names[:rounds]


def run_session(faults: list[str], seed: int, folder: Path, say: Say, enough: threading.Event | None = None) -> Report:
    """Every fault in its turn, until that is `enough`."""
    report = Report(seed, len(faults))
    began = time.time()
    with staged(folder, seed) as stage:
        stage.start()
        stage.feeder.start()
        stage.wait_for_commits(0)
        report.start_seconds = time.time() - stage.run.started_at
        say(f"the job runs after {report.start_seconds:.1f} s")
        try:
            for each in _rounds(stage, faults, Random(seed)):
                report.rounds.append(each)
                say(each.line())
                if enough is not None and enough.is_set():
                    break
            _finish(stage, report)
        except (AssertionError, TimeoutError, ValueError) as stuck:
            report.problems.append(f"{type(stuck).__name__}: {stuck}")
    report.minutes = (time.time() - began) / 60
    report.problems += [f"port {port} is still served" for port in stage.ports() if listens(port)]
    return report


def _rounds(stage: Stage, faults: list[str], chance: Random) -> Iterator[Round]:
    for number, fault in enumerate(faults, start=1):
        struck = FAULTS[fault](stage, chance)
        back = stage.wait_for_commits(struck.over)
        said = struck.aftermath() if struck.aftermath else ""
        yield Round(
            number=number,
            fault=fault,
            evidence=", ".join(filter(None, (struck.evidence, said))),
            attempt=stage.attempt(),
            seconds=max(back.values()) - struck.at,
            first_seconds=min(back.values()) - struck.at,
            load=os.getloadavg()[0],
            problems=tuple(checks.after_round(stage)),
        )


def _finish(stage: Stage, report: Report) -> None:
    stage.feeder.finish()
    wait_until(lambda: checks.all_is_out(stage) or stage.run.has_ended(), PATIENCE, 0.1)
    outcome = stage.stop()
    if (outcome.code, outcome.summary.get("state")) != (0, "STOPPED"):
        report.problems.append(f"the job did not stop in order: {outcome}")
    report.problems += checks.at_the_end(stage, outcome.summary)
    report.events, report.poison = len(stage.feeder.events), len(stage.feeder.poison)
    report.late = len(stage.reader.witness.late)
    report.rows_read = sum(map(len, stage.reader.records.values()))
    report.lost, report.duplicated = checks.lost(stage), checks.repeated(stage)
