"""The folder of one query: Spark's checkpoint, and beside its files one record per epoch of our own.

A crash of the machine can leave the newest entry of Spark's logs cut short, which Spark cannot start from. `repair`
drops such an entry, so that its epoch is run again, or restores it from the copy taken when the epoch began.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidemark.data_plane.durable import write_durably
from tidemark.errors import StateFault

_KEPT = 100


class Checkpoint:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records = folder / "tidemark"

    def prepare(self) -> None:
        """Makes the folder usable by Spark, whatever a crash left in it."""
        self._records.mkdir(parents=True, exist_ok=True)
        self._repair()

    def last_logged(self) -> int | None:
        return max(self._epochs("offsets"), default=None)

    def last_committed(self) -> int | None:
        return max(self._epochs("commits"), default=None)

    def committed(self, epoch: int) -> bool:
        return (self.folder / "commits" / str(epoch)).exists()

    def record(self, epoch: int) -> dict[str, Any]:
        """The record of a committed epoch; its absence means that somebody else changed the folder."""
        path = self._records / str(epoch)
        try:
            loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise StateFault(
                f"the record of epoch {epoch} cannot be read: {problem}",
                hint="the state folder was changed from outside; start again with --fresh",
            ) from problem
        return loaded

    def keep_offsets(self, epoch: int) -> None:
        """Copies Spark's log entry of an epoch before anything of that epoch becomes visible."""
        logged = (self.folder / "offsets" / str(epoch)).read_text(encoding="utf-8")
        write_durably(self._records / f"offsets-{epoch}", logged)

    def write_record(self, epoch: int, record: dict[str, Any]) -> None:
        """Replaces the record of an epoch; a replay writes the same one again."""
        write_durably(self._records / str(epoch), json.dumps(record))
        (self._records / str(epoch - _KEPT)).unlink(missing_ok=True)
        (self._records / f"offsets-{epoch - _KEPT}").unlink(missing_ok=True)

    def _epochs(self, log: str) -> list[int]:
        folder = self.folder / log
        if not folder.is_dir():
            return []
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())

    def _repair(self) -> None:
        for epoch in reversed(self._epochs("commits")):
            if _readable(self.folder / "commits" / str(epoch)):
                break
            _drop(self.folder / "commits" / str(epoch))
        for epoch in reversed(self._epochs("offsets")):
            if not _readable(self.folder / "offsets" / str(epoch)):
                self._restore_offsets(epoch)
        self._drop_beyond_replay()

    def _restore_offsets(self, epoch: int) -> None:
        entry, copy = self.folder / "offsets" / str(epoch), self._records / f"offsets-{epoch}"
        _drop(entry)
        if copy.exists():
            write_durably(entry, copy.read_text(encoding="utf-8"))
        else:
            _drop(self.folder / "commits" / str(epoch))

    def _drop_beyond_replay(self) -> None:
        """Spark replays one epoch: the first that is not committed. What was logged after it has not run."""
        last = self.last_committed()
        replayed = 0 if last is None else last + 1
        for epoch in self._epochs("offsets"):
            if epoch > replayed:
                _drop(self.folder / "offsets" / str(epoch))


def _readable(entry: Path) -> bool:
    """Whether a log entry is whole: a version line, then one JSON value (or `-`) a line."""
    try:
        version, *lines = entry.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, ValueError):
        return False
    return version.startswith("v") and bool(lines) and all(_is_json(line) for line in lines)


def _is_json(line: str) -> bool:
    if line == "-":
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _drop(entry: Path) -> None:
    entry.unlink(missing_ok=True)
    entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
