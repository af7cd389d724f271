"""What the operating system's refusals are called when a sink writes to this machine's disk."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.errors import DiskFull, SinkFailure, SinkMismatch

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
