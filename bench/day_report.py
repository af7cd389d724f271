"""What a day proved: every check with its figure and the load of the machine at that moment."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass, field


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


@dataclass
class Report:
    """Prints each line as it comes, so that a day that hangs shows where."""

    failed: list[str] = field(default_factory=list)
    _begun: float = field(default_factory=time.monotonic)

    def check(self, what: str, holds: bool, figure: str = "") -> None:
        if not holds:
            self.failed.append(what)
        self._line("ok " if holds else "BAD", f"{what}{': ' if figure else ''}{figure}")

    def same(self, what: str, differences: str, figure: str = "") -> None:
        """A comparison with an oracle, which is fine when it found no difference."""
        self.check(what, not differences, differences or figure)

    def title(self, text: str) -> None:
        self.note(f"--- {text}")

    def note(self, text: str) -> None:
        """A figure that is no check by itself."""
        self._line("   ", text)

    def _line(self, mark: str, text: str) -> None:
        load = os.getloadavg()[0]
        print(f"{time.monotonic() - self._begun:6.0f} s  load {load:5.1f}  {mark} {text}", flush=True)

    def conclude(self) -> int:
        """The exit code."""
        print(f"\n{os.cpu_count()} cores. " + (f"WRONG: {'; '.join(self.failed)}" if self.failed else "All is right."))
        return 1 if self.failed else 0
