"""What a result must look like at the moment it is first seen: the checks that need no look at the end.

A witness of one place (topics or tables) is shown every row in the order in which the place holds it. `problems` are
its findings in words, `repeated` counts rows that came twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from faults.chaos.events import Totals, amount

Row = Mapping[str, Any]


@dataclass
class Witness:
    place: str
    problems: list[str] = field(default_factory=list)
    repeated: int = 0
    next_seq: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    windows: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    late: set[tuple[str, int]] = field(default_factory=set)
    attempt: Counter[str] = field(default_factory=Counter)
    totals: Totals = field(default_factory=Totals)

    def see(self, kind: str, row: Row) -> None:
        seen: dict[str, Callable[[Row], None]] = {
            "log": self._see_event,
            "totals": self._see_total,
            "windows": self._see_window,
            "late": self._see_late,
        }
        seen[kind](row)

    def see_attempt(self, sink: str, attempt: int) -> None:
        """Who wrote: never an older driver after a newer one."""
        if attempt < self.attempt[sink]:
            self._complain(f"{sink}: attempt {attempt} wrote after attempt {self.attempt[sink]}")
        self.attempt[sink] = max(attempt, self.attempt[sink])

    def _see_event(self, row: Row) -> None:
        """Each event of a key right after the one before it: none lost, none twice, in order."""
        key, seq = row["key"], row["seq"]
        if seq != self.next_seq[key]:
            self.repeated += seq < self.next_seq[key]
            self._complain(f"log: {key} {seq} came where {self.next_seq[key]} was due")
        if row["amount"] != amount(key, seq):
            self._complain(f"log: {key} {seq} has the amount {row['amount']}")
        self.next_seq[key] = max(seq + 1, self.next_seq[key])

    def _see_total(self, row: Row) -> None:
        """Every value in between equals its recomputation, and a key's values only grow."""
        key, count = row["key"], row["events"]
        if count <= self.counted[key]:
            self.repeated += 1
            self._complain(f"totals: {key} went from {self.counted[key]} to {count} events")
        if (row["total"], row["last_seq"]) != (self.totals.of(key, count), count - 1):
            self._complain(f"totals: {dict(row)} is not what {count} events of {key} add up to")
        self.counted[key] = max(count, self.counted[key])

    def _see_window(self, row: Row) -> None:
        window = (row["key"], _milliseconds(row["window_start"]))
        if window in self.windows:
            self.repeated += 1
            self._complain(f"windows: {window} came again")
        self.windows[window] = (row["events"], row["total"])

    def _see_late(self, row: Row) -> None:
        event = (row["key"], row["seq"])
        if event in self.late:
            self.repeated += 1
            self._complain(f"late: {event} came again")
        self.late.add(event)

    def _complain(self, problem: str) -> None:
        self.problems.append(f"{self.place}: {problem}")


def _milliseconds(moment: str | datetime) -> int:
    known = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return round(known.timestamp() * 1000)
