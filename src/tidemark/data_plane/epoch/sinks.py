"""The sinks of one query: opened under this attempt, written in order, retried while they are unavailable."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tidemark.compiler.plan.plan import SinkPlan
from tidemark.connectors.connector import EpochRows, RefusingSink, Sink
from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.errors import SinkUnavailable, StateFault

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
Result = TypeVar("Result")


@dataclass(frozen=True)
class OpenSink:
    plan: SinkPlan
    sink: Sink


def open_sinks(sinks: list[OpenSink], checkpoint: Checkpoint, writer: SinkWriter) -> None:
    """Fences older attempts, then refuses to start when a ledger and the query's own records disagree."""
    logged, committed = checkpoint.reached(), checkpoint.last_committed()
    wrote = checkpoint.record(committed)["sinks"] if committed is not None else {}
    for opened in sinks:
        last = writer.patiently(opened.sink.open)
        if opened.sink.exactly_once:
            _check_ledger(opened.plan.id, last, logged, wrote.get(opened.plan.id))


def _check_ledger(sink: str, last: int | None, logged: int | None, wrote: int | None) -> None:
    hint = "the sink or the state was restored from elsewhere; start again with --fresh"
    if last is not None and (logged is None or last > logged):
        raise StateFault(f"sink {sink} holds epoch {last}, which this job has not reached", hint=hint, step=sink)
    if wrote is not None and (last is None or last < wrote):
        raise StateFault(f"sink {sink} has lost epoch {wrote}, which it had committed", hint=hint, step=sink)


class SinkWriter:
    """Calls a sink again, ever more slowly, while it is unavailable; meanwhile nothing more is read."""

    def __init__(self, retry_ms: int, pause: Callable[[float], None] = time.sleep) -> None:
        self._retry_seconds = retry_ms / 1000
        self._pause = pause

    def write(self, sink: Sink, epoch: int, rows: EpochRows) -> int:
        """How many rows of the epoch the sink holds, by this call or by a try whose answer was lost."""
        tries = 0

        def once() -> int:
            nonlocal tries
            tries += 1
            held = sink.held(epoch) if tries > 1 else None
            return sink.write(epoch, rows) if held is None else held

        return self.patiently(once)

    def held(self, sink: Sink, epoch: int) -> int | None:
        return self.patiently(lambda: sink.held(epoch))

    def refused(self, sink: Sink, epoch: int) -> int:
        """How many rows of the epoch the sink's target refused by their content."""
        return self.patiently(lambda: sink.refused(epoch)) if isinstance(sink, RefusingSink) else 0

    def patiently(self, call: Callable[[], Result]) -> Result:
        deadline = time.monotonic() + self._retry_seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return call()
            except SinkUnavailable as problem:
                if time.monotonic() + pause > deadline:
                    raise
                _LOG.warning("%s; trying again in %.1f s", problem.message, pause)
            self._pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
