"""Kafka topics as an endless stream, by Spark's own connector.

Partition p of the t-th of T topics is the source's partition `p * T + t`: for one topic Kafka's own number. That
number is the same whenever it is asked for, however many partitions are added later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import functions as F

from tidemark.connectors.connector import EpochScan, PartitionOffsets, Records, SourceContext
from tidemark.connectors.kafka.client import java_settings, librdkafka_settings
from tidemark.connectors.kafka.faults import error_of, source_fault
from tidemark.connectors.kafka.group import GroupOffsets
from tidemark.connectors.kafka.topics import open_admin, partitions_of
from tidemark.errors import SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# What Spark calls the parts of a record; renamed, because a payload may have columns of these names.
_PARTS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
# Spark's word for the first offset of a partition.
_EARLIEST = -2


class KafkaSource:
    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._options = context.options
        self._topics: list[str] = context.options["topics"]
        self._settings = librdkafka_settings(context.options, context.base)
        self._counts: dict[str, int] = {}

    # --- partitions -------------------------------------------------------------------------------------------

    @property
    def partitions(self) -> int:
        return len(self._topics) * max(self._partition_counts().values())

    def present(self) -> Collection[int]:
        """Topics of different size leave numbers out."""
        return {self._number(topic, p) for topic, count in self._partition_counts().items() for p in range(count)}

    def refresh(self) -> None:
        self._counts = {}

    def outgrown(self, logged: Mapping[str, Any]) -> bool:
        known = self.present()
        return any(number not in known for number in self._positions(logged))

    def _number(self, topic: str, partition: int) -> int:
        return partition * len(self._topics) + self._topics.index(topic)

    def _partition_counts(self) -> dict[str, int]:
        if not self._counts:
            self._counts = {topic: self._count(topic) for topic in self._topics}
        return self._counts

    def _count(self, topic: str) -> int:
        """Raises SourceUnreadable, naming the topic, when there is none."""
        try:
            count = partitions_of(self._admin, topic)
        except KafkaException as refused:
            raise source_fault(error_of(refused), self._options["servers"], topic, self._step) from refused
        if not count:
            raise SourceUnreadable(
                f"source {self._step}: Kafka at {self._options['servers']} has no topic {topic}",
                hint="create the topic or correct `topic`",
                step=self._step,
            )
        return count

    # --- reading ----------------------------------------------------------------------------------------------

    def stream(self, spark: SparkSession) -> Records:
        self._partition_counts()
        reader = self._context.reader(spark).format("kafka").options(**self._reading(), **self._start())
        return self._records(reader.load())

    def reread(self, spark: SparkSession, scan: EpochScan) -> Records:
        return self._records(scan.frame())

    def _reading(self) -> dict[str, Any]:
        return {
            "kafka.isolation.level": "read_committed",
            **java_settings(self._options, self._context.base, self._step),
            "subscribe": ",".join(self._topics),
            "groupIdPrefix": self._group,
            "includeHeaders": "true",
            "failOnDataLoss": "true",
            "maxOffsetsPerTrigger": self._context.epoch.max_events,
        }

    def _start(self) -> dict[str, Any]:
        """Where a new job begins; one that has begun goes on from its own offsets."""
        start = self._options.get("start", "earliest")
        if isinstance(start, str):
            return {"startingOffsets": start}
        if "timestamp_ms" in start:
            # Where nothing is that new yet, what comes next is.
            return {"startingTimestamp": start["timestamp_ms"], "startingOffsetsByTimestampStrategy": "latest"}
        given: dict[str, dict[str, int]] = start["offsets"]
        positions = {
            topic: {str(p): given.get(topic, {}).get(str(p), _EARLIEST) for p in range(count)}
            for topic, count in self._partition_counts().items()
        }
        return {"startingOffsets": json.dumps(positions)}

    def _records(self, frame: DataFrame) -> Records:
        return Records(
            frame.withColumnsRenamed({name: _renamed(name) for name in _PARTS}),
            F.concat_ws("/", _part("topic"), _part("partition"), _part("offset")),
            value=_part("value").cast("string"),
            time=_part("timestamp"),
            key=F.make_valid_utf8(_part("key").cast("string")),
            partition=self._partition_column(),
            offset=_part("offset"),
            headers=_headers(_part("headers")),
        )

    def _partition_column(self) -> Column:
        if len(self._topics) == 1:
            return _part("partition")
        place = F.array_position(F.array(*[F.lit(topic) for topic in self._topics]), _part("topic")) - 1
        return _part("partition") * len(self._topics) + place

    # --- how far it is ----------------------------------------------------------------------------------------

    def unread(self, end: str | None, latest: str | None) -> int | None:
        known = [each.lag for each in self.offsets(end, latest).values() if each.lag is not None]
        return sum(known) if known else None

    def offsets(self, end: str | None, latest: str | None) -> dict[int, PartitionOffsets]:
        newest, read = self._positions(_parsed(latest)), self._positions(_parsed(end))
        return {
            number: PartitionOffsets(
                offset, newest.get(number), max(0, newest[number] - offset) if number in newest else None
            )
            for number, offset in read.items()
        }

    def committed(self, logged: Mapping[str, Any]) -> None:
        """Notes the offsets of a done epoch in the consumer group; what is not of these topics is somebody else's."""
        if ours := {topic: logged[topic] for topic in self._topics if topic in logged}:
            self._noted.note(ours)

    def close(self) -> None:
        self._noted.close()
        # Its threads look for brokers as long as it is there.
        vars(self).pop("_admin", None)

    def _positions(self, offsets: Mapping[str, Any]) -> dict[int, int]:
        """Spark's offsets by partition of this source."""
        return {
            self._number(topic, int(partition)): offset
            for topic in self._topics
            for partition, offset in offsets.get(topic, {}).items()
        }

    @property
    def _step(self) -> str:
        return self._context.plan.id

    @property
    def _group(self) -> str:
        return self._options.get("group") or f"tidemark.{self._context.job}.{self._step}"

    @cached_property
    def _admin(self) -> AdminClient:
        return open_admin(self._settings)

    @cached_property
    def _noted(self) -> GroupOffsets:
        return GroupOffsets(self._settings, self._group)


def _renamed(name: str) -> str:
    return f"__tm_kafka_{name}"


def _part(name: str) -> Column:
    return F.col(_renamed(name))


def _parsed(offsets: str | None) -> dict[str, Any]:
    return dict(json.loads(offsets)) if offsets else {}


def _headers(headers: Column) -> Column:
    """By name; of equal names the last counts, and bytes that are not text are shown as replacement characters."""
    texts = F.transform(
        headers, lambda each: F.struct(each["key"], F.make_valid_utf8(each["value"].cast("string")).alias("value"))
    )
    return F.map_from_entries(texts)
