"""How far a query has come: its watermark, its accounting and what each sink has, as one record per epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.data_plane.epoch.accounting import added
from tidemark.data_plane.epoch.watermark import QueryWatermark, SourceTime
from tidemark.protocol.messages import Accounting, PartitionStatus, SourceStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Progress:
    """Restored from the last committed epoch; `commit` writes the record of the next one.

    Sinks and users know an epoch by its number plus `shift`. `events` is how many the query has read from all its
    sources, those included that another query accounts for.
    """

    def __init__(self, checkpoint: Checkpoint, watermark: QueryWatermark) -> None:
        self._checkpoint = checkpoint
        self.watermark = watermark
        self.total = Accounting()
        self.epochs = 0
        self.events = 0
        self.last_epoch = checkpoint.last_committed()
        self.shift = 0
        self._sinks: dict[str, int] = {}
        if self.last_epoch is not None:
            self._restore(checkpoint.record(self.last_epoch))

    def _restore(self, record: dict[str, Any]) -> None:
        self.watermark.restore(record["watermark"])
        self.watermark.started()
        self.total = Accounting.model_validate(record["total"])
        self.epochs = record["epochs"]
        self.events = record.get("events", 0)
        self._sinks = record["sinks"]
        self.shift = record.get("shift", 0)

    def commit(self, epoch: int, events: int, counts: Accounting, wrote: list[str]) -> None:
        """Writes the record of an epoch whose sinks are done; `wrote` are those that hold it in a ledger."""
        self.total = added(self.total, counts)
        self.epochs += 1
        self.events += events
        self.last_epoch = epoch
        self._sinks = {**self._sinks, **dict.fromkeys(wrote, epoch + self.shift)}
        record = {
            "epoch": epoch,
            "epochs": self.epochs,
            "events": self.events,
            "watermark": self.watermark.to_json(),
            "total": self.total.model_dump(),
            "sinks": self._sinks,
            "shift": self.shift,
        }
        self._checkpoint.write_record(epoch, record)

    @property
    def sink_epochs(self) -> dict[str, int]:
        """The last epoch that each sink with a ledger holds."""
        return self._sinks

    def source_status(self) -> dict[str, SourceStatus]:
        return {name: _status(source) for name, source in self.watermark.sources.items()}


def _status(source: SourceTime) -> SourceStatus:
    partitions = tuple(
        PartitionStatus(
            partition=index,
            watermark=to_datetime(source.partition_watermark(partition)),
            max_event_time=to_datetime(partition.newest),
            idle=partition.idle,
            quiet_ms=partition.quiet // 1000,
        )
        for index, partition in enumerate(source.partitions)
        if partition.exists
    )
    return SourceStatus(watermark=to_datetime(source.watermark), idle=source.idle, partitions=partitions)


def to_datetime(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)
