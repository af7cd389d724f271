"""The folder of one query: Spark's checkpoint, and beside its files one record per epoch of our own.

A crash can leave Spark's newest log entries cut short, or state of a first epoch that was never logged; Spark cannot
start from either. `prepare` drops such things, so that their epoch is run again, or restores an entry from the copy
taken when its epoch, or the one after it, began.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any

from tidemark.durable import write_atomically
from tidemark.epoch_records import EpochRecords

_KEPT = 100
_NONE_YET = b"-"
_COMMIT_COPY = "last-commit"
_RESCALED = "rescaled"
_PARALLELISM = "spark.sql.shuffle.partitions"


class Note(StrEnum):
    """What has been found in a query's input once, and is looked for ever after."""

    LINES_TO_DECODE = "lines-to-decode"
    EVENTS_AHEAD = "events-ahead"


class Checkpoint:
    """`sources` are the names under which the query's sources stand in Spark's offset log.

    `known_parallelism` is over how many key groups the state is spread, as of the last start or first epoch.
    """

    def __init__(self, folder: Path, sources: Collection[str]) -> None:
        self.folder = folder
        self.known_parallelism: int | None = None
        self._sources = set(sources)
        self._records = folder / "tidemark"

    def prepare(self) -> None:
        """Makes the folder usable by Spark, whatever a crash left in it."""
        self._records.mkdir(parents=True, exist_ok=True)
        self._repair()
        self._log_quiet_epoch_after_rescale()
        self.known_parallelism = self.parallelism()

    def last_logged(self) -> int | None:
        return max(self._epochs("offsets"), default=None)

    def last_committed(self) -> int | None:
        return max(self._epochs("commits"), default=None)

    def shift(self) -> int:
        """By how much sinks know the epochs of this folder under higher numbers: it was rebuilt, and began anew."""
        committed = self.last_committed()
        return 0 if committed is None else int(self.record(committed).get("shift", 0))

    def reached(self) -> int | None:
        """The newest logged epoch, by the number that sinks know."""
        logged = self.last_logged()
        return None if logged is None else logged + self.shift()

    def committed(self, epoch: int) -> bool:
        return self._commit(epoch).exists()

    def begun(self) -> int | None:
        """An epoch that began and is not committed: sinks may hold it. One that was only logged is not begun."""
        begun, committed = self.last_begun(), self.last_committed()
        return begun if begun is not None and (committed is None or begun > committed) else None

    def last_begun(self) -> int | None:
        """The newest epoch that a driver has begun to run."""
        copies = self._records.glob("offsets-*")
        return max((int(path.name.removeprefix("offsets-")) for path in copies), default=None)

    def offsets(self, epoch: int) -> dict[str, Any]:
        """Up to where the epoch read, by source."""
        return _logged_offsets(self.folder / "offsets" / str(epoch))

    def parallelism(self) -> int | None:
        """Over how many key groups the state is spread; None before the first epoch."""
        logged = self.last_logged()
        if logged is None:
            return None
        conf = json.loads((self.folder / "offsets" / str(logged)).read_bytes().split(b"\n")[1])["conf"]
        return int(conf[_PARALLELISM]) if _PARALLELISM in conf else None

    def rescaled(self, epoch: int) -> None:
        """Spark has added an epoch after `epoch` that holds the same state, spread anew: it gets the same record."""
        self.write_record(epoch + 1, {**self.record(epoch), "epoch": epoch + 1, _RESCALED: True})

    def forget_sinks(self) -> None:
        """For another lineage: what sinks hold of this one does not count there."""
        if (epoch := self.last_committed()) is not None:
            self.write_record(epoch, {**self.record(epoch), "sinks": {}})

    def take_back_commit(self, epoch: int) -> None:
        """Makes Spark run an epoch again at its next start."""
        _drop(self._commit(epoch))

    def remember(self, note: Note) -> None:
        """From now on the query is built for it."""
        write_atomically(self._records / note, "")

    def knows(self, note: Note) -> bool:
        return (self._records / note).exists()

    def record(self, epoch: int) -> dict[str, Any]:
        """The record of a committed epoch; its absence means that somebody else changed the folder."""
        return EpochRecords(self.folder).read(epoch)

    def keep_logged(self, epoch: int) -> None:
        """Copies Spark's log entries before anything of an epoch becomes visible: its own, and the commit before it."""
        logged = (self.folder / "offsets" / str(epoch)).read_text(encoding="utf-8")
        write_atomically(self._records / f"offsets-{epoch}", logged)
        if self.committed(epoch - 1):
            # Not forced to the disk, which would cost every epoch: it survives whatever happens to processes.
            copy = b"%d\n" % (epoch - 1) + self._commit(epoch - 1).read_bytes()
            (self._records / _COMMIT_COPY).write_bytes(copy)
        if self.known_parallelism is None:
            self.known_parallelism = self.parallelism()

    def write_record(self, epoch: int, record: dict[str, Any]) -> None:
        """Replaces the record of an epoch; a replay writes the same one again."""
        write_atomically(self._records / str(epoch), json.dumps(record))
        (self._records / str(epoch - _KEPT)).unlink(missing_ok=True)
        (self._records / f"offsets-{epoch - _KEPT}").unlink(missing_ok=True)

    def _epochs(self, log: str) -> list[int]:
        folder = self.folder / log
        if not folder.is_dir():
            return []
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())

    def _repair(self) -> None:
        for epoch in reversed(self._epochs("commits")):
            if _is_whole_commit(self._commit(epoch)):
                break
            self._restore_commit(epoch)
        for epoch in self._epochs("offsets"):
            if not self._has_whole_offsets(epoch):
                self._restore_offsets(epoch)
        self._drop_beyond_replay()
        self._drop_unused_listings()
        self._forget_unlogged_start()
        self._repair_identity()
        self._drop_cut_checksums()

    def _restore_commit(self, epoch: int) -> None:
        """Without its commit an epoch is run again, and the one after it is not yet: then no sink may hold that."""
        _drop(self._commit(epoch))
        copy = self._records / _COMMIT_COPY
        number, _, entry = copy.read_bytes().partition(b"\n") if copy.exists() else (b"", b"", b"")
        if number == str(epoch).encode() and _is_whole_commit_entry(entry):
            write_atomically(self._commit(epoch), entry.decode())

    def _commit(self, epoch: int) -> Path:
        return self.folder / "commits" / str(epoch)

    def _log_quiet_epoch_after_rescale(self) -> None:
        """Spark must have run an epoch before it closes windows without data, and cannot run that of a rescale again.

        An epoch with the same input and watermark changes nothing, so nobody becomes late by it.
        """
        last = self.last_committed()
        if last is None or self.last_logged() != last or not self.record(last).get(_RESCALED):
            return
        entry = (self.folder / "offsets" / str(last)).read_text(encoding="utf-8")
        write_atomically(self.folder / "offsets" / str(last + 1), entry)

    def _has_whole_offsets(self, epoch: int) -> bool:
        entry, copy = self.folder / "offsets" / str(epoch), self._records / f"offsets-{epoch}"
        if copy.exists():
            return entry.read_bytes() == copy.read_bytes()
        return _logged_offsets(entry).keys() == self._sources

    def _restore_offsets(self, epoch: int) -> None:
        entry, copy = self.folder / "offsets" / str(epoch), self._records / f"offsets-{epoch}"
        _drop(entry)
        if copy.exists():
            write_atomically(entry, copy.read_text(encoding="utf-8"))
        else:
            _drop(self._commit(epoch))

    def _drop_beyond_replay(self) -> None:
        """Spark replays one epoch: the first that is not committed. What was logged after it has not run."""
        last = self.last_committed()
        replayed = 0 if last is None else last + 1
        for epoch in self._epochs("offsets"):
            if epoch > replayed:
                _drop(self.folder / "offsets" / str(epoch))

    def _drop_unused_listings(self) -> None:
        """A file source lists its files before the epoch is logged; what no epoch refers to is listed again.

        Else the first epoch after a start would take those files and the next ones too. A listing that also sums up
        earlier ones may be all that is left of them: it stays, if it is whole, and so do its neighbours. Of other
        sources, and before their first epoch, nobody can say what is used.
        """
        last = self.last_logged()
        used = {} if last is None else _logged_offsets(self.folder / "offsets" / str(last))
        for source in self._sources:
            newest = used.get(source, {}).get("logOffset")
            listings = list((self.folder / "sources" / source).glob("[0-9]*"))
            unused = [listing for listing in listings if newest is None or int(listing.stem) > newest]
            sums_up = any(listing.suffix and _is_whole_listing(listing) for listing in unused)
            for listing in unused:
                if (newest is not None and not sums_up) or not _is_whole_listing(listing):
                    _drop(listing)

    def _forget_unlogged_start(self) -> None:
        """Spark writes state before it logs its first epoch, and then refuses to start without that entry."""
        if self._epochs("offsets") or self._epochs("commits") or self._epochs("tidemark"):
            return
        for leftover in ("offsets", "commits", "state", "sources"):
            if (self.folder / leftover).exists():
                shutil.rmtree(self.folder / leftover)

    def _repair_identity(self) -> None:
        """The query's id only tells its runs apart in Spark's own messages: a copy gets a new one, or who lost it."""
        identity = self.folder / "metadata"
        known = identity.exists() and _is_json(identity.read_bytes())
        if not known and (identity.exists() or self.last_logged() is not None):
            _drop(identity)
            write_atomically(identity, json.dumps({"id": str(uuid.uuid4())}))

    def _drop_cut_checksums(self) -> None:
        """Spark refuses an entry for its checksum, and reads one without."""
        for folder in (".", "offsets", "commits", "sources/*"):
            for checksum in self.folder.glob(f"{folder}/.*.crc"):
                if not _fits(checksum):
                    checksum.unlink()


def size_on_disk(folder: Path) -> int:
    """The bytes in a folder that others may be changing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(Path(parent, name)).st_size
    return total


def _is_whole_commit(entry: Path) -> bool:
    return _is_whole_commit_entry(entry.read_bytes())


def _is_whole_commit_entry(entry: bytes) -> bool:
    """A version line, then one JSON object."""
    version, _, body = entry.partition(b"\n")
    return version.startswith(b"v") and _is_json(body)


def _logged_offsets(entry: Path) -> dict[str, Any]:
    """An entry of the offset log by source: a version line, a line of metadata, then an offset for each source.

    In version 2 each is `name:offset`; in version 1 a source is known by its place.
    """
    version, *lines = entry.read_bytes().split(b"\n")
    if not version.startswith(b"v") or not lines or not _is_json(lines[0]):
        return {}
    if version == b"v1":
        offsets = [(str(place).encode(), b":", line) for place, line in enumerate(lines[1:])]
    else:
        offsets = [line.partition(b":") for line in lines[1:]]
    whole = {name.decode(): offset for name, _, offset in offsets if offset == _NONE_YET or _is_json(offset)}
    return {name: {} if offset == _NONE_YET else json.loads(offset) for name, offset in whole.items()}


def _is_whole_listing(entry: Path) -> bool:
    """A version line, then one JSON object a line."""
    version, *lines = entry.read_bytes().split(b"\n")
    return version.startswith(b"v") and bool(lines) and all(_is_json(line) for line in lines)


def _fits(checksum: Path) -> bool:
    """Whether a checksum file has the length that its entry asks for: a head, then four bytes for each 512."""
    entry = checksum.with_name(checksum.name.removeprefix(".").removesuffix(".crc"))
    return entry.exists() and checksum.stat().st_size == 8 + 4 * -(-entry.stat().st_size // 512)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _drop(entry: Path) -> None:
    entry.unlink(missing_ok=True)
    entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
