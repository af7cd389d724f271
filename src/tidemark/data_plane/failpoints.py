"""Places where a test can kill the driver. Off unless TIDEMARK_FAILPOINT names one as `point@epoch` or `point`."""

from __future__ import annotations

import os
import signal

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


class Failpoints:
    """Kills the process with SIGKILL at the chosen point; the JVM follows when its standard input closes."""

    def __init__(self, chosen: str) -> None:
        point, _, epoch = chosen.partition("@")
        if point and point not in POINTS:
            raise ValueError(f"{VARIABLE}: no failpoint {point!r}; there are {', '.join(POINTS)}")
        self._point = point
        self._epoch = int(epoch) if epoch else None

    @classmethod
    def from_environment(cls) -> Failpoints:
        return cls(os.environ.get(VARIABLE, ""))

    def reach(self, point: str, epoch: int) -> None:
        if point == self._point and self._epoch in (None, epoch):
            os.kill(os.getpid(), signal.SIGKILL)
