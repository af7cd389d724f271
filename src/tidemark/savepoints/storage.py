"""Where savepoints are kept: a folder of files that appears whole or not at all.

`storage_at` knows which kind of place a location is; `file://` and plain paths are local folders.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import unquote, urlsplit

from tidemark.durable import make_folder, sync, sync_tree
from tidemark.errors import DiskFull, UsageError

_BLOCK = 1024 * 1024


class Draft(Protocol):
    """A savepoint being written; readers do not see it."""

    def write(self, path: str, content: Iterator[bytes]) -> None: ...


class Storage(Protocol):
    """One savepoint's place. Paths are relative to it, with slashes."""

    def exists(self) -> bool: ...

    def files(self) -> list[str]:
        """Every file in it, sorted."""
        ...

    def read(self, path: str) -> Iterator[bytes]:
        """The content in blocks. Raises FileNotFoundError."""
        ...

    def write(self) -> AbstractContextManager[Draft]:
        """A context in which a draft is filled. It becomes the savepoint when the context ends without an error."""
        ...

    def delete(self) -> None: ...


def storage_at(location: str) -> Storage:
    """The storage behind a location. Raises UsageError for a kind of place that is not supported."""
    parts = urlsplit(location)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return LocalStorage(Path(unquote(parts.path)))
    if parts.scheme:
        raise UsageError(
            f"savepoints cannot be kept at {parts.scheme}://", hint="give a folder: an absolute path or file:///path"
        )
    if not Path(location).is_absolute():
        raise UsageError(f"{location!r} is no absolute path", hint="give a folder: an absolute path or file:///path")
    return LocalStorage(Path(location))


class LocalStorage:
    """A folder on this machine. A draft is a hidden folder beside it, on the disk before it is renamed.

    One writer at a time: it removes what a killed one left.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def exists(self) -> bool:
        return self._folder.is_dir()

    def files(self) -> list[str]:
        found = (Path(parent, name) for parent, _, names in os.walk(self._folder) for name in names)
        return sorted(path.relative_to(self._folder).as_posix() for path in found)

    def read(self, path: str) -> Iterator[bytes]:
        with (self._folder / path).open("rb") as file:
            yield from blocks(file)

    def write(self) -> AbstractContextManager[Draft]:
        return _write_locally(self._folder)

    def delete(self) -> None:
        """Readers see it whole until it is gone."""
        if self.exists():
            doomed = self._folder.with_name(f".{self._folder.name}.{uuid.uuid4().hex}.deleted")
            self._folder.rename(doomed)
            shutil.rmtree(doomed)


def remains_of_deletions(folder: Path) -> list[Path]:
    """What killed processes were deleting in there, and nobody can see any more."""
    return list(folder.glob(".*.deleted"))


class _LocalDraft:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, path: str, content: Iterator[bytes]) -> None:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.writelines(content)


@contextmanager
def _write_locally(folder: Path) -> Iterator[Draft]:
    draft = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.partial")
    try:
        make_folder(folder.parent)
        for leftover in folder.parent.glob(f".{folder.name}.*.partial"):
            shutil.rmtree(leftover)
        draft.mkdir()
        yield _LocalDraft(draft)
        sync_tree(draft)
        draft.rename(folder)
        sync(folder.parent)
    except OSError as problem:
        raise _in_our_words(problem, folder) from problem
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _in_our_words(problem: OSError, folder: Path) -> DiskFull | UsageError:
    if problem.errno == errno.ENOSPC:
        return DiskFull(
            f"no space is left for a savepoint in {folder}", hint="free some space, or choose another place"
        )
    reason = problem.strerror or str(problem)
    return UsageError(
        f"a savepoint cannot be written to {folder}: {reason}", hint="choose a folder that can be written"
    )


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block
