"""Writes standard input to a log file line by line and rotates it: `log_writer.py LOG LARGEST KEPT STORED [SECRET …]`.

Runs as a process of its own with nothing but the standard library. No line is cut or lost by a rotation; two writers
of one log (a driver that is ending and the next one) take turns. The values of the secrets named, in the environment
or in the file of stored ones, are masked.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST_LINE = 64 * 1024
SHORTEST_SECRET = 4


class RotatingLog:
    """`path` is the newest part, `path.1` the one before it, up to `path.<kept>`."""

    def __init__(self, path: Path, largest: int, kept: int) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept
        self._lock = path.with_name(f".{path.name}.lock")

    def write(self, lines: bytes) -> None:
        """Appends whole lines, to a new file when they would make the current one too large."""
        with open(self._lock, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._path.exists() and self._path.stat().st_size + len(lines) > self._largest:
                self._rotate()
            with open(self._path, "ab") as log:
                log.write(lines)

    def _rotate(self) -> None:
        for number in range(self._kept, 0, -1):
            older = self._part(number - 1)
            if older.exists():
                os.replace(older, self._part(number))

    def _part(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


def whole_lines(descriptor: int) -> Iterator[bytes]:
    """What can be read, as it comes, in pieces that end with a line; a line without end is broken up."""
    rest = b""
    while chunk := os.read(descriptor, LONGEST_LINE):
        lines, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            yield lines + newline
        if len(rest) > LONGEST_LINE:
            yield rest + b"\n"
            rest = b""
    if rest:
        yield rest + b"\n"


def masked(text: bytes, secrets: dict[bytes, bytes]) -> bytes:
    for value, name in secrets.items():
        text = text.replace(value, b"$" + name)
    return text


def secret_values(names: list[str], stored: Path) -> dict[bytes, bytes]:
    """The longest first, so that a value inside another one does not leave half of it."""
    try:
        kept = json.loads(stored.read_bytes()) if stored.exists() else {}
    except (OSError, ValueError):
        kept = {}  # the driver cannot read it either, and says so
    found = [(os.fsencode(kept[name]["value"]), os.fsencode(name)) for name in names if name in kept]
    values = dict([*found, *((os.environb.get(os.fsencode(name), b""), os.fsencode(name)) for name in names)])
    return {value: values[value] for value in sorted(values, key=len, reverse=True) if len(value) >= SHORTEST_SECRET}


def main(path: str, largest: str, kept: str, stored: str, *names: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    log = RotatingLog(Path(path), int(largest), int(kept))
    secrets = secret_values(list(names), Path(stored))
    for lines in whole_lines(0):
        # What cannot be written is lost, and what comes when there is room again is not.
        with contextlib.suppress(OSError):
            log.write(masked(lines, secrets))


if __name__ == "__main__":
    main(*sys.argv[1:])
