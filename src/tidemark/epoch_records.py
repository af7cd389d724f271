"""The records that a driver keeps of its epochs beside Spark's checkpoint, and from which of them on a query has to
read again so that its open windows can be made anew.

Whoever only reads may do so while the driver goes on: a record is replaced whole, and the oldest are cleared away.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.errors import StateFault

Record = dict[str, Any]
_FOLDER = "tidemark"
_BEFORE_THE_FIRST: Record = {"watermark": {"sources": {}}, "events": 0}


@dataclass(frozen=True)
class ReplayStart:
    """`after` is the last epoch that is not read again, and `record` its own; None for the beginning of the sources."""

    after: int | None
    record: Record

    def events_until(self, record: Record) -> int | None:
        """How many events are read again up to that record; None when one of them is of before they were counted."""
        before, until = self.record.get("events"), record.get("events")
        return None if before is None or until is None else until - before


class EpochRecords:
    """Those of one query, by the folder of its checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / _FOLDER

    def known(self) -> list[int]:
        """The epochs that have a record and a copy of their log entry, in order."""
        try:
            names = {path.name for path in self._folder.iterdir()}
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdigit() and f"offsets-{name}" in names)

    def read(self, epoch: int) -> Record:
        """The record of a committed epoch; its absence means that somebody else changed the folder."""
        try:
            loaded: Record = json.loads((self._folder / str(epoch)).read_bytes())
        except (OSError, ValueError) as problem:
            raise StateFault(
                f"the record of epoch {epoch} cannot be read: {problem}",
                hint="the state folder was changed from outside; start again with --fresh",
            ) from problem
        return loaded

    def watermark_ms(self, epoch: int) -> int:
        """The watermark that Spark ran the epoch with."""
        try:
            _, metadata, *_ = (self._folder / f"offsets-{epoch}").read_text(encoding="utf-8").split("\n")
            return int(json.loads(metadata)["batchWatermarkMs"])
        except (OSError, ValueError, KeyError) as problem:
            raise StateFault(f"the log entry of epoch {epoch} cannot be read: {problem}") from problem

    def replay_start(self, last: int, watermark_ms: int, window_ms: int) -> ReplayStart | None:
        """After the newest epoch, up to `last`, whose events all belong to windows that the watermark has closed.

        None when the epochs that are known do not reach back that far.
        """
        oldest = (watermark_ms - window_ms) * 1000
        for epoch in reversed([each for each in self.known() if each <= last]):
            record = self.read(epoch)
            newest = _newest(record)
            if newest is None or newest <= oldest:
                return ReplayStart(epoch, record)
            if epoch == 0:
                return ReplayStart(None, _BEFORE_THE_FIRST)
        return None


def _newest(record: Record) -> int | None:
    """The largest event time that had been seen by the end of an epoch."""
    seen = [newest for partitions in record["watermark"]["sources"].values() for newest, _, _ in partitions]
    return max((newest for newest in seen if newest is not None), default=None)
