"""Java for tests: a process that lives for seconds spends half of its time on optimising code. This leaves that out."""

from __future__ import annotations

VARIABLE = "JAVA_TOOL_OPTIONS"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
