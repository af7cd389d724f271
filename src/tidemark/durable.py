"""Files that survive a crash: written whole or not at all, on the disk before anything relies on them, and locks."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

_LOCK_POLL_SECONDS = 0.02


def make_folder(folder: Path) -> None:
    """Creates the folder and its missing parents, each entered durably in its parent."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def sync(path: Path) -> None:
    """Forces a file's bytes, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(Path(parent, name))
        sync(Path(parent))


def write_atomically(path: Path, text: str, mode: int = 0o666) -> None:
    """Readers, and a later start, see the old content or the whole new one. The file never has more than `mode`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


def lock_exclusively(file: IO[str], seconds: float) -> bool:
    """Locks an open file until it is closed or the process ends; False when another holds it that long."""
    deadline = time.monotonic() + seconds
    while not _try_lock(file.fileno()):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOCK_POLL_SECONDS)
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
