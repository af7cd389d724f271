"""The Kafka sink: an epoch's rows, those that the topic cannot take, and its marker in one transaction.

An older driver is refused twice: by the brokers, which know the newest producer of a transactional id, and by the
marker, which knows the newest attempt. A commit whose outcome is unknown is settled by reading the marker again.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tidemark.connectors.chunks import computed_chunks
from tidemark.connectors.connector import EpochRows, Sink, SinkContext
from tidemark.connectors.kafka.client import librdkafka_settings
from tidemark.connectors.kafka.encode import RecordEncoder
from tidemark.connectors.kafka.faults import TOO_LARGE, error_of, is_fenced, named_sink_faults
from tidemark.connectors.kafka.ledger import Ledger, Marker
from tidemark.connectors.kafka.refused import Headers, Keeping, RefusedTopic
from tidemark.connectors.kafka.spark_sink import SparkKafkaSink
from tidemark.connectors.kafka.topics import create_missing_topic, open_admin, topic_settings
from tidemark.connectors.refusal import Refusal, from_bytes, refused_rows
from tidemark.schema import parse_type

_TAKE_OVER_SECONDS = 60.0
_COMMIT_SECONDS = 60.0
_ABORT_SECONDS = 15.0
_POLL_ROWS = 1_000
# What librdkafka sends at most where the topic's own limit cannot be seen.
_USUAL_LARGEST = 1_000_000
# Room for what was too large elsewhere, and for a whole record in base64.
_DEAD_LETTERS = {"max.message.bytes": str(16 * 1024 * 1024)}
_PRODUCER = {
    "enable.idempotence": True,
    # As the Java client does it, so that a key lands where other programs expect it.
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    "compression.type": "lz4",
    # What waits in memory, whatever the size of the epoch.
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 65_536,
    # An epoch may take this long; a longer one needs the property.
    "transaction.timeout.ms": 600_000,
    # How long one record is tried; then the engine tries the whole epoch again, with back-off.
    "message.timeout.ms": 30_000,
    "delivery.report.only.error": True,
}


def kafka_sink(context: SinkContext) -> Sink:
    """The sink that the option `delivery` asks for."""
    return SparkKafkaSink(context) if context.options.get("delivery") == "at_least_once" else KafkaSink(context)


class KafkaSink:
    """Exactly once, for readers with `isolation.level=read_committed`; others also see rows that were taken back."""

    exactly_once = True

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._options = context.options
        self._topic: str = context.options["topic"]
        self._settings = librdkafka_settings(context.options, context.base)
        types = {column.name: parse_type(column.type) for column in context.columns}
        self._encoder = RecordEncoder(types, context.options.get("key") or (), context.options["format"])
        self._ledger = Ledger(context, self._settings)
        self._refused = RefusedTopic(context, self._settings)
        self._largest = _USUAL_LARGEST
        self._producer: Producer | None = None
        self._marker = Marker(context.attempt)
        self._undelivered: KafkaError | None = None

    def open(self) -> int | None:
        self.close()
        with self._named_faults():
            admin = open_admin(self._settings)
            create_missing_topic(admin, self._topic, settings=self._new_topic_settings())
            self._ledger.prepare(admin)
            self._refused.prepare(admin)
            self._take_over(admin)
        return self._marker.epoch

    def held(self, epoch: int) -> int | None:
        with self._named_faults():
            self._ready()
        return self._marker.held(epoch)

    def write(self, epoch: int, rows: EpochRows) -> int:
        with self._named_faults():
            self._ready()
            if (held := self._marker.held(epoch)) is not None:
                return held
            self._ledger.check_new(self._marker, epoch)
            try:
                return self._transact(epoch, rows)
            except KafkaException as refused:
                error = error_of(refused)
                if not is_fenced(error) and error.code() not in TOO_LARGE:
                    raise
            # Either a newer attempt has come, which this finds out, or an older one was refused after it had fenced us,
            # or the topic takes less than when it was looked at.
            self._ready()
            return self._transact(epoch, rows)

    def refused(self, epoch: int) -> int:
        with self._named_faults():
            self._ready()
        return self._marker.refused.rows if epoch == self._marker.epoch else 0

    def refused_rows(self, epoch: int) -> Iterator[pa.RecordBatch]:
        with self._named_faults():
            self._ready()
            if epoch == self._marker.epoch and self._marker.refused.pieces:
                for part in self._refused.parts(self._marker.refused):
                    yield from_bytes(part)

    def close(self) -> None:
        """Whatever is not committed stays so."""
        if self._producer is not None:
            self._producer.purge(blocking=False)
            self._producer = None

    # --- whose turn it is -------------------------------------------------------------------------------------

    def _ready(self) -> None:
        if self._producer is None:
            self._take_over(open_admin(self._settings))

    def _new_topic_settings(self) -> dict[str, str]:
        has_reasons = any(column.name == "_error_code" for column in self._context.columns)
        return _DEAD_LETTERS if has_reasons else {}

    def _take_over(self, admin: AdminClient) -> None:
        """Fences every older producer and ends what one of them left open; then the marker can be trusted."""
        # Before anything is taken from it: a newer attempt must not be disturbed.
        self._ledger.check_turn(self._ledger.peek())
        self._largest = int(topic_settings(admin, self._topic).get("max.message.bytes", _USUAL_LARGEST))
        producer = Producer(self._producer_settings())
        producer.init_transactions(_TAKE_OVER_SECONDS)
        marker = self._ledger.read()
        self._ledger.check_turn(marker)
        self._marker = marker or Marker(self._context.attempt)
        self._producer = producer
        if marker is None or marker.attempt < self._context.attempt:
            self._marker = self._marker.taken_over(self._context.attempt)
            self._in_transaction(producer, lambda: self._send_marker(producer, self._marker))

    def _producer_settings(self) -> dict[str, Any]:
        context = self._context
        return {
            **self._settings,
            **_PRODUCER,
            "transactional.id": f"{self._options['namespace']}.{context.job}.{context.sink}",
            "on_delivery": self._on_undelivered,
            "message.max.bytes": self._largest,
            **(self._options.get("properties") or {}),
        }

    # --- one epoch --------------------------------------------------------------------------------------------

    def _transact(self, epoch: int, rows: EpochRows) -> int:
        producer = self._producer
        assert producer is not None, "the sink is not open"
        chunks = computed_chunks(rows)
        after: Marker = self._marker

        def send() -> None:
            nonlocal after
            refused = self._refused.keeping(self._largest, functools.partial(self._send, producer))
            count = self._send_rows(producer, chunks, refused)
            after = self._marker.after(epoch, count, refused.done(self._marker.refused))
            self._send_marker(producer, after)
            self._context.failpoint("before_sink_commit")

        self._in_transaction(producer, send)
        self._marker = after
        self._context.failpoint("after_sink_commit")
        return after.rows

    def _in_transaction(self, producer: Producer, send: Any) -> None:
        self._undelivered = None
        producer.begin_transaction()
        try:
            send()
            self._commit(producer)
        except KafkaException as refused:
            cause = self._undelivered or error_of(refused)
            self._abandon(producer)
            raise KafkaException(cause) from refused
        except BaseException:
            self._abandon(producer)
            raise

    def _commit(self, producer: Producer) -> None:
        """Asks again while Kafka says that asking again is safe."""
        deadline = time.monotonic() + _COMMIT_SECONDS
        while True:
            try:
                producer.commit_transaction(max(1.0, deadline - time.monotonic()))
                return
            except KafkaException as refused:
                if not error_of(refused).retriable() or time.monotonic() > deadline:
                    raise

    def _abandon(self, producer: Producer) -> None:
        """Takes the transaction back. The next use makes a new producer and learns the outcome from the marker."""
        self._producer = None
        producer.purge(blocking=False)
        try:
            producer.abort_transaction(_ABORT_SECONDS)
        except KafkaException:
            # The brokers cannot be reached, or have given the id to another producer; either way they end it.
            return

    def _send_rows(self, producer: Producer, chunks: Iterator[pa.RecordBatch], refused: Keeping) -> int:
        given = 0
        for number, chunk in enumerate(chunks):
            refused.add(list(refused_rows(chunk, functools.partial(self._try, producer))))
            given += chunk.num_rows
            if number == 0:
                self._context.failpoint("mid_sink")
        return given - refused.rows

    def _try(self, producer: Producer, rows: pa.RecordBatch) -> Refusal | None:
        """All of these rows, or none and the reason."""
        records = self._encoder.fitting(rows, self._largest)
        if isinstance(records, Refusal):
            return records
        for number, (key, value) in enumerate(records):
            self._send(producer, self._topic, key, value)
            if number % _POLL_ROWS == 0:
                producer.poll(0)
        return None

    def _send(
        self,
        producer: Producer,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
    ) -> None:
        """Waits while the queue is full."""
        while True:
            try:
                producer.produce(topic, value, key, headers=headers)
                return
            except BufferError:
                producer.poll(0.1)

    def _send_marker(self, producer: Producer, marker: Marker) -> None:
        producer.produce(self._ledger.topic, marker.to_bytes(), self._ledger.key, 0)

    def _on_undelivered(self, error: KafkaError | None, _: object) -> None:
        """Keeps the first reason; what follows it only says that the transaction is lost."""
        self._undelivered = self._undelivered or error

    def _named_faults(self) -> AbstractContextManager[None]:
        return named_sink_faults(self._options["servers"], self._topic, self._context.sink)
