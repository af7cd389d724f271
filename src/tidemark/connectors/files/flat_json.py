"""Whether every line of a file is at most one JSON object without another inside.

Then Spark's JSON reader gives one row for each line. Of other lines it may keep only the beginning, or make several
rows, or none. Looking at the bytes costs a fiftieth of reading them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

import numpy as np

_CHUNK = 128 * 1024
_LONGEST_LINE = 16 * 1024 * 1024
_LOCAL = re.compile(r"(?:file:(?://)?)?(?P<path>/.*)", re.DOTALL)
_BRACE, _NEWLINE = b"}"[0], b"\n"[0]


def is_flat(name: str) -> bool:
    """Whether each line ends with its first closing brace, in valid UTF-8; false where the file is not local."""
    local = _LOCAL.fullmatch(name)
    if local is None:
        return False
    with Path(local["path"]).open("rb") as file:
        return _all_flat(file)


def _all_flat(file: IO[bytes]) -> bool:
    while chunk := file.read(_CHUNK):
        if not chunk.endswith(b"\n"):
            chunk += file.readline(_LONGEST_LINE)
        if not _ends_lines_with_braces(chunk if chunk.endswith(b"\n") else chunk + b"\n") or not _is_clean(chunk):
            return False
    return True


def _ends_lines_with_braces(lines: bytes) -> bool:
    """Every brace is followed by a newline, and there are as many of one as of the other."""
    characters = np.frombuffer(lines, np.uint8)
    braces = np.flatnonzero(characters == _BRACE)
    newlines = np.count_nonzero(characters == _NEWLINE)
    return len(braces) == newlines and bool((characters[braces + 1] == _NEWLINE).all())


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
