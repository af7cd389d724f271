"""Java for tests: a process that lives for seconds spends half of its time on optimising code. This leaves that out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "JAVA_TOOL_OPTIONS"
_ONE_COLLECTOR = "-XX:+UseSerialGC"
QUICK_START = f"-XX:TieredStopAtLevel=1 {_ONE_COLLECTOR}"


def choose() -> None:
    """For every Java process that is started from now on, those of commands included."""
    os.environ.setdefault(VARIABLE, QUICK_START)


@contextmanager
def lasting() -> Iterator[None]:
    """For a process started here that lives for minutes: optimising it takes less than it saves."""
    chosen = os.environ[VARIABLE]
    os.environ[VARIABLE] = _ONE_COLLECTOR
    try:
        yield
    finally:
        os.environ[VARIABLE] = chosen
