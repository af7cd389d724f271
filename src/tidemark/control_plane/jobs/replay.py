"""How much of its input a query would read again for state of a new shape, from what its driver has left on the disk.

As of the last epoch it has recorded: a job that runs goes on until it is stopped for the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan
from tidemark.compiler.plan.rebuild import rebuildable_window, too_far_back
from tidemark.epoch_records import EpochRecords
from tidemark.errors import StateFault
from tidemark.generations import Generations


@dataclass(frozen=True)
class Replay:
    """`events` is None when nobody knows; `obstacle` is what keeps the query from being rebuilt, for people."""

    events: int | None
    obstacle: str | None = None


def replay_of(state: Path, plan: ExecutionPlan, query: QueryPlan) -> Replay:
    """For a query of the new plan whose window can be rebuilt, by the state folder of its job."""
    window = rebuildable_window(plan, query)
    assert window is not None
    try:
        records = EpochRecords(Generations(state).current / query.id)
        known = records.known()
        if not known:
            return Replay(0)
        last = known[-1]
        start = records.replay_start(last, records.watermark_ms(last), window.size_ms)
        return Replay(None, too_far_back(query)) if start is None else Replay(start.events_until(records.read(last)))
    except StateFault:
        # The driver has cleared away or moved what was being read; it decides by itself when the time has come.
        return Replay(None)
