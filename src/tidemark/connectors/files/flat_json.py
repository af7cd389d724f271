"""Whether every line of a file is at most one JSON object without another inside, and how many lines there are.

Spark's JSON reader makes at most one row of such a line. Of others it may keep only the beginning, or make several
rows. Looking at the bytes costs a fiftieth of reading them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

# Measured: larger ones are no faster, and two threads take longer than one.
_CHUNK = 1024 * 1024
_LONGEST_LINE = 16 * 1024 * 1024
_LOCAL = re.compile(r"(?:file:(?://)?)?(?P<path>/.*)", re.DOTALL)
_BRACE, _NEWLINE = b"}"[0], b"\n"[0]


def flat_lines(names: Iterable[str]) -> int | None:
    """How many lines the files have; None unless each ends with its first closing brace, in valid UTF-8."""
    total = 0
    for name in names:
        if (lines := _lines_of(name)) is None:
            return None
        total += lines
    return total


def _lines_of(name: str) -> int | None:
    local = _LOCAL.fullmatch(name)
    if local is None:
        return None
    with Path(local["path"]).open("rb") as file:
        return _count(file)


def _count(file: IO[bytes]) -> int | None:
    total = 0
    while chunk := file.read(_CHUNK):
        if not chunk.endswith(b"\n"):
            chunk += file.readline(_LONGEST_LINE)
        lines = _braced_lines(chunk if chunk.endswith(b"\n") else chunk + b"\n")
        if lines is None or not _is_clean(chunk):
            return None
        total += lines
    return total


def _braced_lines(lines: bytes) -> int | None:
    """How many there are, if a brace stands before every newline and nowhere else."""
    characters = np.frombuffer(lines, np.uint8)
    newlines = characters == _NEWLINE
    if newlines[0] or not np.array_equal((characters == _BRACE)[:-1], newlines[1:]):
        return None
    return int(np.count_nonzero(newlines))


def _is_clean(chunk: bytes) -> bool:
    """No other line ends, no bytes from which Spark's reader would guess another encoding, and valid UTF-8."""
    if b"\r" in chunk or b"\0" in chunk:
        return False
    if chunk.isascii():
        return True
    try:
        return "\ufeff" not in chunk.decode("utf-8")
    except UnicodeDecodeError:
        return False
