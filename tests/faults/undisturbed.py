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
        assert outcome.summary == self.summary
        assert processes(folder) == []
