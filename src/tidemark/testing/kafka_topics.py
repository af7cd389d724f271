"""Topics of a broker under test: made, filled and read to the end, the way an outsider would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

_SECONDS = 30.0


@dataclass(frozen=True)
class Record:
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp_ms: int = 0
    headers: Mapping[str, bytes] = field(default_factory=dict)
    offset: int = -1


class Topics:
    """`settings` are librdkafka's, beside the address: how to log in, for instance."""

    def __init__(self, servers: str, settings: Mapping[str, Any] | None = None) -> None:
        self._settings = {"bootstrap.servers": servers, "log_level": 0, **(settings or {})}
        self.admin = AdminClient(self._settings)

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Setting names have `_` for the dots."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        self._done(self.admin.create_topics([NewTopic(topic, partitions, 1, config=named)]))

    def add_partitions(self, topic: str, total: int) -> None:
        self._done(self.admin.create_partitions([NewPartitions(topic, total)]))

    def delete(self, topic: str) -> None:
        self._done(self.admin.delete_topics([topic]))

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """What passing retention does."""
        self._done(self.admin.delete_records([TopicPartition(topic, p, offset) for p, offset in before.items()]))

    def produce(self, topic: str, records: Iterable[Record]) -> None:
        """Returns when the broker has all of them; raises what it refused one with."""
        producer = Producer({**self._settings, "acks": "all", "linger.ms": 5})
        refused: list[Any] = []
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=lambda error, _: refused.append(error) if error else None,
                timestamp=record.timestamp_ms,
                headers=dict(record.headers),
            )
            producer.poll(0)
        assert producer.flush(_SECONDS) == 0, "the broker did not take all records"
        assert not refused, refused[0]

    def read(self, topic: str, *, committed: bool = True) -> list[Record]:
        """Every record that is there now, partition by partition, as a reader of committed data sees it, or not."""
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = Consumer(
            {
                **self._settings,
                "group.id": "tidemark-topics",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.message.max.bytes": 32 * 1024 * 1024,
                "fetch.wait.max.ms": 10,
            }
        )
        try:
            return _read_all(consumer, topic)
        finally:
            consumer.close()

    def end_offsets(self, topic: str, *, committed: bool) -> dict[int, int]:
        """The last stable offset of each partition, or with `committed` false its very end."""
        partitions = self.admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = dict.fromkeys((TopicPartition(topic, partition) for partition in partitions), latest)
        found = self.admin.list_offsets(wanted, isolation_level=isolation, request_timeout=_SECONDS)
        return {where.partition: future.result().offset for where, future in found.items()}

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        """What lag tools see of a consumer group, by partition; one without an offset is left out."""
        consumer = Consumer({**self._settings, "group.id": group})
        try:
            partitions = consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
            found = consumer.committed([TopicPartition(topic, each) for each in partitions], timeout=_SECONDS)
            return {each.partition: each.offset for each in found if each.offset >= 0}
        finally:
            consumer.close()

    def _done(self, futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(_SECONDS)


def _read_all(consumer: Consumer, topic: str) -> list[Record]:
    partitions = sorted(consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    records: list[Record] = []
    unfinished = set(partitions)
    while unfinished:
        message = consumer.poll(_SECONDS)
        assert message is not None, f"{topic} could not be read to its end"
        error = message.error()
        if error is None:
            records.append(_record(message))
        else:
            assert error.name() == "_PARTITION_EOF", error
            unfinished.discard(message.partition())
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _record(message: Any) -> Record:
    return Record(
        message.value(),
        message.key(),
        message.partition(),
        message.timestamp()[1],
        dict(message.headers() or ()),
        message.offset(),
    )
