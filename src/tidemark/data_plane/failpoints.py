"""Places where a test can kill the driver, chosen by TIDEMARK_FAILPOINT; off unless it is set.

It names one or several as `query:point@epoch#attempt`, with commas between them. Without a query or an epoch the
first one counts that gets there, without an attempt the job's first: a driver started again is not struck again.
"""

from __future__ import annotations

import logging
import os
import re
import signal
from dataclasses import dataclass

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
_LOG = logging.getLogger(__name__)
_SHAPE = re.compile(r"((?P<query>\w+):)?(?P<point>[a-z_]+)(@(?P<epoch>\d+))?(#(?P<attempt>\d+))?")


@dataclass(frozen=True)
class Strike:
    query: str | None
    point: str
    epoch: int | None
    attempt: int


class Failpoints:
    """Those of one query: SIGKILL at the chosen points; the JVM follows when its standard input closes."""

    def __init__(self, chosen: str, query: str, attempt: int) -> None:
        strikes = [_strike(part) for part in chosen.split(",") if part]
        self._query = query
        self._strikes = [each for each in strikes if each.attempt == attempt and each.query in (None, query)]

    @classmethod
    def from_environment(cls, query: str, attempt: int) -> Failpoints:
        return cls(os.environ.get(VARIABLE, ""), query, attempt)

    def reach(self, point: str, epoch: int) -> None:
        if any(strike.point == point and strike.epoch in (None, epoch) for strike in self._strikes):
            _LOG.warning("struck at %s:%s@%d", self._query, point, epoch)
            os.kill(os.getpid(), signal.SIGKILL)


def _strike(text: str) -> Strike:
    shape = _SHAPE.fullmatch(text)
    if shape is None or shape["point"] not in POINTS:
        raise ValueError(f"{VARIABLE}: {text!r} is no `query:point@epoch#attempt`; the points are {', '.join(POINTS)}")
    epoch = int(shape["epoch"]) if shape["epoch"] else None
    return Strike(shape["query"], shape["point"], epoch, int(shape["attempt"] or 1))
