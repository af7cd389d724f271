"""What a session of rounds comes to: how often each fault struck, how long recoveries took, what was found wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

LIMIT_SECONDS = 30.0


@dataclass(frozen=True)
class Round:
    """`seconds` is from the fault until every query has committed an epoch again, `first_seconds` until one has.

    `load` is the machine's load average at that time: what else ran made recoveries slower.
    """

    number: int
    fault: str
    evidence: str
    attempt: int
    seconds: float
    first_seconds: float
    load: float
    problems: tuple[str, ...] = ()

    def line(self) -> str:
        found = "".join(f"\n      PROBLEM {problem}" for problem in self.problems)
        return (
            f"{self.number:3} {self.fault:30} {self.seconds:5.1f} s  attempt {self.attempt:3}: {self.evidence}{found}"
        )


@dataclass
class Report:
    seed: int
    rounds_asked: int
    start_seconds: float = 0.0
    rounds: list[Round] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    events: int = 0
    poison: int = 0
    late: int = 0
    rows_read: int = 0
    lost: int = 0
    duplicated: int = 0
    minutes: float = 0.0

    @property
    def p95(self) -> float:
        return percentile([each.seconds for each in self.rounds], 0.95)

    @property
    def found(self) -> list[str]:
        """Everything that is wrong but the time it took."""
        wrong = [*(problem for each in self.rounds for problem in each.problems), *self.problems]
        if len(self.rounds) < self.rounds_asked:
            wrong.append(f"only {len(self.rounds)} of {self.rounds_asked} faults struck and were recovered from")
        if self.lost or self.duplicated:
            wrong.append(f"{self.lost} events are lost, {self.duplicated} results came twice")
        return wrong

    @property
    def passed(self) -> bool:
        return not self.found and self.p95 <= LIMIT_SECONDS

    def lines(self) -> Iterator[str]:
        yield f"{'fault':32} struck   p50   p95   max"
        for fault in sorted({each.fault for each in self.rounds}):
            yield self._line(fault, [each.seconds for each in self.rounds if each.fault == fault])
        yield self._line("all", [each.seconds for each in self.rounds])
        yield f"{self.events} events, {self.poison} poison records, {self.late} late; {self.rows_read} records read"
        yield f"lost {self.lost}, duplicated {self.duplicated}, in {self.minutes:.1f} minutes with seed {self.seed}"
        yield f"load average while recovering: {percentile([each.load for each in self.rounds], 0.5):.1f} (median)"
        yield from (f"PROBLEM {problem}" for problem in self.found)
        yield "PASSED" if self.passed else "FAILED"

    def _line(self, name: str, seconds: Sequence[float]) -> str:
        figures = "".join(f" {percentile(seconds, share):5.1f}" for share in (0.5, 0.95, 1.0))
        return f"{name:32} {len(seconds):6}{figures}"

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "p95": self.p95, "passed": self.passed}, indent=2) + "\n")


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
