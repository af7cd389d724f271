"""What a sink has committed and who may write, as the newest marker in a compacted topic of the sink's own.

A topic of its own, because an open transaction hides everything behind it in its partition from readers: no other
sink, and no other job, can then delay this one's recovery.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.kafka.reader import READ_SECONDS, end_of, reading
from tidemark.connectors.kafka.topics import create_missing_topic, topic_settings
from tidemark.connectors.turns import check_new, fenced, is_older
from tidemark.errors import SinkMismatch, SinkUnavailable

# Small segments: only closed ones are compacted, and every start reads the topic.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),
    "segment.ms": str(3_600_000),
    "min.cleanable.dirty.ratio": "0.01",
}


@dataclass(frozen=True)
class Kept:
    """Rows of an epoch that were refused: how many, and where the pieces of what is kept of them begin."""

    rows: int = 0
    pieces: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Marker:
    """The newest epochs that are held, what the newest one refused, and the attempt that may write."""

    attempt: int
    epoch: int | None = None
    rows: int = 0
    previous_epoch: int | None = None
    previous_rows: int = 0
    refused: Kept = Kept()

    def held(self, epoch: int) -> int | None:
        return {self.previous_epoch: self.previous_rows, self.epoch: self.rows}.get(epoch)

    def after(self, epoch: int, rows: int, refused: Kept | None = None) -> Marker:
        return Marker(self.attempt, epoch, rows, self.epoch, self.rows, refused or Kept())

    def taken_over(self, attempt: int) -> Marker:
        return replace(self, attempt=attempt)

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Marker:
        fields = json.loads(data)
        return cls(**{**fields, "refused": Kept(**fields.get("refused", {}))})


def prepare_compacted(admin: AdminClient, topic: str, settings: dict[str, str], step: str) -> None:
    """Creates a topic of one partition, or checks that an existing one keeps what is written to it."""
    create_missing_topic(admin, topic, 1, settings)
    policy = topic_settings(admin, topic).get("cleanup.policy", "compact")
    if "compact" not in policy or "delete" in policy:
        message = f"the topic {topic} has cleanup.policy={policy}, so it forgets what was written"
        raise SinkMismatch(message, hint="Set cleanup.policy=compact on it.", step=step)


class Ledger:
    def __init__(self, context: SinkContext, settings: dict[str, Any]) -> None:
        self._context = context
        self._settings = settings
        self.topic = f"{context.options['namespace']}.{context.job}.{context.sink}.ledger"
        self.key = f"{context.lineage}/{context.sink}".encode()

    def prepare(self, admin: AdminClient) -> None:
        prepare_compacted(admin, self.topic, COMPACTED, self._context.sink)

    def check_turn(self, marker: Marker | None) -> None:
        """Raises Fenced when a newer attempt has been here."""
        if marker is not None and is_older(self._context, marker.attempt):
            raise fenced(self._context, marker.attempt)

    def check_new(self, marker: Marker, epoch: int) -> None:
        check_new(self._context, marker.epoch, epoch)

    def peek(self) -> Marker | None:
        """The newest marker that is committed by now; one may be on its way."""
        return self._read(IsolationLevel.READ_COMMITTED)

    def read(self) -> Marker | None:
        """The newest marker for good: after this producer's predecessors have been fenced."""
        return self._read(IsolationLevel.READ_UNCOMMITTED)

    def _read(self, up_to: IsolationLevel) -> Marker | None:
        """Reads committed markers up to the end that `up_to` sees."""
        end = end_of(self._settings, self.topic, up_to)
        with reading(self._settings, self.topic, OFFSET_BEGINNING) as consumer:
            return self._newest(consumer, end)

    def _newest(self, consumer: Consumer, end: int) -> Marker | None:
        newest: Marker | None = None
        deadline = time.monotonic() + READ_SECONDS
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if (message.offset() or 0) >= end:
                    return newest
            elif message.key() == self.key and (value := message.value()) is not None:
                newest = Marker.from_bytes(value)
        raise SinkUnavailable(
            f"the ledger topic {self.topic} could not be read to its end in {READ_SECONDS:g} s",
            hint="A transaction on it may still be open; it is tried again.",
            step=self._context.sink,
        )
