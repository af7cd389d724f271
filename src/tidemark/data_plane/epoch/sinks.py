"""The sinks of one query: opened under this attempt, written in order, retried while they are unavailable."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from tidemark.compiler.plan.plan import SinkPlan
from tidemark.connectors.connector import EpochRows, Sink
from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.errors import SinkUnavailable, StateFault

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0


@dataclass(frozen=True)
class OpenSink:
    plan: SinkPlan
    sink: Sink


def open_sinks(sinks: list[OpenSink], checkpoint: Checkpoint) -> None:
    """Fences older attempts, then refuses to start when a ledger and the query's own records disagree."""
    logged, committed = checkpoint.reached(), checkpoint.last_committed()
    wrote = checkpoint.record(committed)["sinks"] if committed is not None else {}
    for opened in sinks:
        last = opened.sink.open()
        if opened.sink.exactly_once:
            _check_ledger(opened.plan.id, last, logged, wrote.get(opened.plan.id))


def _check_ledger(sink: str, last: int | None, logged: int | None, wrote: int | None) -> None:
    hint = "the sink or the state was restored from elsewhere; start again with --fresh"
    if last is not None and (logged is None or last > logged):
        raise StateFault(f"sink {sink} holds epoch {last}, which this job has not reached", hint=hint, step=sink)
    if wrote is not None and (last is None or last < wrote):
        raise StateFault(f"sink {sink} has lost epoch {wrote}, which it had committed", hint=hint, step=sink)


class SinkWriter:
    """Writes an epoch to one sink; while it is unavailable nothing more is read."""

    def __init__(self, retry_ms: int, pause: Callable[[float], None] = time.sleep) -> None:
        self._retry_seconds = retry_ms / 1000
        self._pause = pause

    def write(self, sink: Sink, epoch: int, rows: EpochRows) -> int:
        deadline = time.monotonic() + self._retry_seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return sink.write(epoch, rows)
            except SinkUnavailable as problem:
                if time.monotonic() + pause > deadline:
                    raise
                _LOG.warning("%s; trying again in %.1f s", problem.message, pause)
            self._pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
