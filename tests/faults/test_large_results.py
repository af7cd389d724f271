"""The result of an epoch may be larger than the driver's memory, also on its way to a sink that the driver writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.running import Run

pytestmark = [pytest.mark.faults, pytest.mark.spark]

ROWS, WIDTH = 160_000, 5_000
MEMORY = "512m"
JOB = f"""\
tidemark: 1
name: shop
epoch: {{max_events: {ROWS}}}
sources:
  notes: {{generator: {{count: {ROWS}, rate: 1000, columns: {{text: "repeat('x', {WIDTH})"}}}}}}
sinks:
  out: {{input: notes, console: {{}}}}
"""


def test_an_epoch_larger_than_javas_memory(tmp_path: Path) -> None:
    assert ROWS * WIDTH > 1.4 * 512 * 1024 * 1024
    (tmp_path / "job.yaml").write_text(JOB)
    run = Run(tmp_path, "--until-drained", variables={"TIDEMARK_DRIVER_MEMORY": MEMORY})
    try:
        outcome = run.wait()
    finally:
        run.end()
    assert outcome.code == 0, run.words
    assert run.attempts() == [1], "Java lived through it"
    assert outcome.summary["sinks"]["out"]["rows"] == ROWS
