"""A checkpoint as of its newest committed epoch, taken while Spark goes on writing to it.

Spark adds files under names of their own and never changes one, so links to them are a copy that nobody can take
away. What belongs to later epochs is left out, and so is the query's id: a copy is another query to Spark.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path

from tidemark.data_plane.checkpoint import Note
from tidemark.errors import StateFault

_TRIES = 5
_NUMBER = re.compile(r"\d+")
_VERSIONED = re.compile(r"(\d+)(?:_[0-9a-f-]+)?\.(?:changelog|zip)")
_SCHEMA = re.compile(r"(\d+)_[0-9a-f-]+")
_LOGS = ("offsets", "commits")
# Listings of a file source may be ahead of the epochs; those files are then read next, as they would have been.
_WHOLE = ("sources",)


class _WentAway(Exception):
    """A file was removed while it was being linked: Spark has moved on by many epochs."""


def snapshot(checkpoint: Path, target: Path) -> int | None:
    """Links a checkpoint into `target`; returns the epoch it stands for, None when there is none yet.

    Raises StateFault when what the epoch needs is not there.
    """
    for _ in range(_TRIES):
        epoch = _newest_commit(checkpoint)
        target.mkdir(parents=True)
        if epoch is None:
            return None
        try:
            _link(checkpoint, target, epoch)
            _check_whole(target, epoch)
            return epoch
        except _WentAway:
            shutil.rmtree(target)
    raise StateFault(
        f"{checkpoint.name} commits epochs faster than its state can be copied",
        hint="try again; a longer `epoch: {interval: …}` helps",
        step=checkpoint.name,
    )


def _newest_commit(checkpoint: Path) -> int | None:
    folder = checkpoint / "commits"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=None)


def belongs(path: Path, epoch: int) -> bool:
    """Whether a file, relative to its checkpoint, is part of it as of an epoch."""
    name = path.name
    if name.startswith("."):
        if not name.endswith(".crc"):
            return False
        name = name.removeprefix(".").removesuffix(".crc")
    match path.parts[:-1]:
        case (log,) if log in _LOGS:
            return _NUMBER.fullmatch(name) is not None and int(name) <= epoch
        case ("tidemark",):
            number = name.removeprefix("offsets-")
            return name in set(Note) or (_NUMBER.fullmatch(number) is not None and int(number) <= epoch)
        case ("state", *inner):
            return _state_belongs(inner, name, epoch)
        case (top, *_):
            return top in _WHOLE
    return False


def _state_belongs(folders: list[str], name: str, epoch: int) -> bool:
    """The state after epoch N is version N + 1; what describes it is numbered by epochs."""
    if version := _VERSIONED.fullmatch(name):
        return int(version[1]) <= epoch + 1
    if folders[-2:] == ["_metadata", "v2"]:
        return _NUMBER.fullmatch(name) is not None and int(name) <= epoch
    if "_stateSchema" in folders:
        schema = _SCHEMA.fullmatch(name)
        return schema is None or int(schema[1]) <= epoch
    return True


def _link(checkpoint: Path, target: Path, epoch: int) -> None:
    """What refers to other files is listed and linked before them, and was written after them."""
    found = [Path(parent, name).relative_to(checkpoint) for parent, _, names in os.walk(checkpoint) for name in names]
    wanted = [path for path in found if belongs(path, epoch)]
    for path in sorted(wanted, key=lambda path: path.suffix == ".sst"):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        _link_file(checkpoint / path, target / path)


def _link_file(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        # An old file that nobody needs any more, or one that is needed: `_check_whole` tells.
        return
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        shutil.copy2(source, target)


def _check_whole(target: Path, epoch: int) -> None:
    """Every partition of every stateful operator has a snapshot, or its beginning, and all changes since."""
    for log in _LOGS:
        if not (target / log / str(epoch)).exists():
            raise _WentAway
    if not (target / "tidemark" / str(epoch)).exists():
        raise _WentAway
    commit = json.loads((target / "commits" / str(epoch)).read_bytes().partition(b"\n")[2])
    for operator, partitions in (commit.get("stateUniqueIds") or {}).items():
        for partition, stores in enumerate(partitions):
            folder = target / "state" / operator / str(partition)
            for unique in stores:
                _check_versions(folder, epoch + 1, unique)


def _check_versions(folder: Path, version: int, unique: str) -> None:
    newest = [path for path in folder.rglob(f"{version}_{unique}.*") if _VERSIONED.fullmatch(path.name)]
    if not newest:
        raise _WentAway
    store = newest[0].parent
    held = {kind: _versions(store, kind) for kind in ("zip", "changelog")}
    base = max((each for each in held["zip"] if each <= version), default=0)
    if not set(range(base + 1, version + 1)) <= held["changelog"]:
        raise _WentAway


def _versions(store: Path, kind: str) -> set[int]:
    matches = (_VERSIONED.fullmatch(path.name) for path in store.glob(f"*.{kind}"))
    return {int(match[1]) for match in matches if match}
