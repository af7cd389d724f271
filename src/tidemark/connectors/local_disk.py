"""Paths on this machine: what a path in a job means, and what the operating system's refusals are called."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tidemark.errors import DiskFull, SinkFailure, SinkMismatch, UsageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNFIT = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


def local_path(text: str, base: Path) -> Path:
    """An absolute path for a plain one, relative to `base`, or a `file:` address."""
    if "://" not in text and not text.startswith("file:"):
        return (base / text).absolute()
    address = urlsplit(text)
    if address.scheme != "file" or address.netloc not in ("", "localhost"):
        raise UsageError(
            f"{text!r} is not a path on this machine", hint="Give a path, or file:///… with three slashes."
        )
    return Path(unquote(address.path)).absolute()


@contextmanager
def named_disk_faults(path: Path, step: str) -> Iterator[None]:
    """Turns an OSError about a sink's own path into DiskFull, SinkMismatch or SinkFailure."""
    try:
        yield
    except OSError as error:
        raise disk_fault(error, path, step) from error


def disk_fault(error: OSError, path: Path, step: str) -> SinkFailure:
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return disk_full(path, step)
    if error.errno in _UNFIT:
        return SinkMismatch(
            f"cannot write to {path}: {reason}",
            hint="Check that the path is writable and of the right kind.",
            step=step,
        )
    return SinkFailure(f"cannot write to {path}: {reason}", hint="Check the disk and the path.", step=step)


def disk_full(path: Path, step: str) -> DiskFull:
    return DiskFull(f"no space left for {path}", hint="Free some space there, then start the job again.", step=step)
