"""Refused rows of the newest epoch, kept in a compacted topic of the sink's own until the next epoch is written.

They are written in the transaction of their epoch, as Arrow bytes cut into pieces that any topic takes: a row that was
too large for its topic is too large for others too. The marker says where the pieces lie.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.kafka.encode import OVERHEAD
from tidemark.connectors.kafka.ledger import COMPACTED, Kept, prepare_compacted
from tidemark.connectors.kafka.reader import READ_SECONDS, end_of, reading
from tidemark.connectors.refusal import Refusal, to_bytes, with_reasons
from tidemark.errors import SinkUnavailable

_LONGEST_PIECE = 500_000
_ROOM_FOR_KEY = 200
Headers = dict[str, str | bytes | None]
_LAST_OF_PART: Headers = {"last": b"1"}
# Pieces travel in batches of the producer, whose size goes by the sink's topic and not by this one.
_SETTINGS = {**COMPACTED, "max.message.bytes": str(16 * 1024 * 1024)}
Send = Callable[[str, bytes, bytes | None, Headers], None]


class RefusedTopic:
    """Pieces have the same keys in every epoch, so that compaction leaves those of the newest one."""

    def __init__(self, context: SinkContext, settings: dict[str, Any]) -> None:
        self._context = context
        self._settings = settings
        self.name = f"{context.options['namespace']}.{context.job}.{context.sink}.refused"

    def prepare(self, admin: AdminClient) -> None:
        """Only when something reads the port: a job without such rows needs no right to another topic."""
        if self._context.keeps_refused:
            prepare_compacted(admin, self.name, _SETTINGS, self._context.sink)

    def keeping(self, largest: int, send: Send) -> Keeping:
        size = min(_LONGEST_PIECE, largest - OVERHEAD - _ROOM_FOR_KEY)
        return Keeping(self, send, size, self._context.keeps_refused)

    def key(self, number: int) -> bytes:
        return f"{self._context.lineage}/{self._context.sink}/{number}".encode()

    def end(self) -> int:
        return end_of(self._settings, self.name, IsolationLevel.READ_UNCOMMITTED)

    def parts(self, kept: Kept) -> Iterator[bytes]:
        """What was kept, in the parts in which it was given."""
        with reading(self._settings, self.name, kept.offset) as consumer:
            part = bytearray()
            for piece in self._pieces(consumer, kept.pieces):
                part += piece.value() or b""
                if piece.headers():
                    yield bytes(part)
                    part.clear()

    def _pieces(self, consumer: Consumer, count: int) -> Iterator[Message]:
        """They are committed, so they come; a reader may only be told of the commit a moment later."""
        number = 0
        deadline = time.monotonic() + READ_SECONDS
        while number < count:
            message = consumer.poll(1.0)
            if time.monotonic() > deadline:
                raise self._unreadable()
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if error is None and message.key() == self.key(number):
                number += 1
                yield message

    def _unreadable(self) -> SinkUnavailable:
        return SinkUnavailable(
            f"the topic {self.name} could not be read in {READ_SECONDS:g} s",
            hint="It has the rows that were refused, and must not be deleted; it is tried again.",
            step=self._context.sink,
        )


@dataclass
class Keeping:
    """The refused rows of one transaction, as they come; without `wanted` they are only counted."""

    topic: RefusedTopic
    send: Send
    size: int
    wanted: bool
    rows: int = 0
    pieces: int = 0
    offset: int = 0

    def add(self, bad: list[tuple[pa.RecordBatch, Refusal]]) -> None:
        self.rows += len(bad)
        if bad and self.wanted:
            self.offset = self.offset if self.pieces else self.topic.end()
            self._send_part(to_bytes(with_reasons(bad)))

    def done(self, before: Kept) -> Kept:
        """Takes away what the epoch before kept and this one has not written over."""
        for number in range(self.pieces, before.pieces):
            self.send(self.topic.name, self.topic.key(number), None, {})
        return Kept(self.rows, self.pieces, self.offset)

    def _send_part(self, part: bytes) -> None:
        for start in range(0, len(part), self.size):
            headers = _LAST_OF_PART if start + self.size >= len(part) else {}
            self.send(self.topic.name, self.topic.key(self.pieces), part[start : start + self.size], headers)
            self.pieces += 1
