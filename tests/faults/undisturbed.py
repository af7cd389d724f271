"""The run that nothing disturbs, and what it means to equal it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import workload
from faults.running import Outcome, processes

REQUIRED_SECONDS = 30.0


@dataclass(frozen=True)
class Undisturbed:
    contents: dict[str, list[str]]
    summary: dict[str, Any]
    start_seconds: float

    @property
    def recovery_limit(self) -> float:
        """30 s; a machine too busy to start a job in that time cannot recover one, so there a start sets the limit."""
        return max(REQUIRED_SECONDS, 2 * self.start_seconds)

    def assert_equalled_by(self, folder: Path, outcome: Outcome) -> None:
        assert outcome.code == 0
        assert workload.contents(folder) == self.contents
        assert _accounting(outcome.summary) == _accounting(self.summary)
        assert processes(folder) == []


def _accounting(summary: dict[str, Any]) -> dict[str, Any]:
    """Without the number of epochs: a query that waits for another to catch up may close its windows in one more."""
    return {name: value for name, value in summary.items() if name != "epochs"}
