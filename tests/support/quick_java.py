"""Java for tests: without the optimising compiler, which takes more of two busy cores than it gives back.

That holds for a process of seconds, and for the Spark session that all tests of a worker share as well.
"""

from __future__ import annotations

import os

VARIABLE = "JAVA_TOOL_OPTIONS"
# Without that compiler Java reserves a fifth of the usual room for compiled code, which a run of minutes fills: it
# threw code away and compiled it anew.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


def choose() -> None:
    """For every Java process that is started from now on, those of commands included."""
    os.environ.setdefault(VARIABLE, QUICK_START)
