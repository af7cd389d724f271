"""Places where a test can strike the driver, chosen by TIDEMARK_FAILPOINT; off unless it is set.

It names one or several as `step:point@epoch#attempt`, with commas between them; the step is a query or one of its
sinks. Without a step or an epoch the first one counts that gets there, without an attempt the job's first: a driver
started again is not struck again.
Or it is the path of a file that may hold one of them at any time: whoever is struck takes the file away first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

POINTS = (
    "after_log",
    "mid_sink",
    "before_sink_commit",
    "after_sink_commit",
    "between_sinks",
    "after_epoch_record",
    "after_epoch_commit",
)
VARIABLE = "TIDEMARK_FAILPOINT"
STRUCK = ".struck"
_LOG = logging.getLogger(__name__)
_SHAPE = re.compile(
    r"((?P<step>\w+):)?(?P<point>[a-z_]+)(@(?P<epoch>\d+))?(#(?P<attempt>\d+))?(!(?P<signal>SIGKILL|SIGSTOP))?"
)


@dataclass(frozen=True)
class Strike:
    """`attempt` None is any; SIGSTOP freezes the driver there instead of killing it."""

    step: str | None
    point: str
    epoch: int | None
    attempt: int | None
    signal: signal.Signals

    def hits(self, query: str, sink: str | None, attempt: int, point: str, epoch: int) -> bool:
        here = point == self.point and self.step in (None, query, sink)
        return here and self.epoch in (None, epoch) and self.attempt in (None, attempt)


class Failpoints:
    """Those of one query: the signal at the chosen points; the JVM follows a kill when its standard input closes."""

    def __init__(self, chosen: str, query: str, attempt: int) -> None:
        self._query = query
        self._attempt = attempt
        self._file = Path(chosen) if os.path.isabs(chosen) else None
        self._strikes = [] if self._file else [_strike(part, default=1) for part in chosen.split(",") if part]

    @classmethod
    def from_environment(cls, query: str, attempt: int) -> Failpoints:
        return cls(os.environ.get(VARIABLE, ""), query, attempt)

    def reach(self, point: str, epoch: int, sink: str | None = None) -> None:
        for strike in (*self._strikes, *self._filed()):
            if strike.hits(self._query, sink, self._attempt, point, epoch) and self._taken():
                _LOG.warning("struck at %s:%s@%d", strike.step or self._query, point, epoch)
                os.kill(os.getpid(), strike.signal)

    def _filed(self) -> Iterator[Strike]:
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                yield _strike(self._file.read_text().strip(), default=None)

    def _taken(self) -> bool:
        """Whether the strike is ours: of several queries that get there at once, one takes the file."""
        if self._file is None:
            return True
        try:
            os.rename(self._file, f"{self._file}{STRUCK}")
        except FileNotFoundError:
            return False
        return True


def _strike(text: str, default: int | None) -> Strike:
    shape = _SHAPE.fullmatch(text)
    if shape is None or shape["point"] not in POINTS:
        raise ValueError(f"{VARIABLE}: {text!r} is no `step:point@epoch#attempt`; the points are {', '.join(POINTS)}")
    epoch = int(shape["epoch"]) if shape["epoch"] else None
    attempt = int(shape["attempt"]) if shape["attempt"] else default
    return Strike(shape["step"], shape["point"], epoch, attempt, signal.Signals[shape["signal"] or "SIGKILL"])
