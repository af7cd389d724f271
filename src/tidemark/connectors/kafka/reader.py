"""Topics read to a known place by the sink itself, as a reader of committed records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition

from tidemark.connectors.kafka.faults import MISSING, error_of, may_work_later
from tidemark.connectors.kafka.topics import end_offsets, open_admin

READ_SECONDS = 60.0
_PAUSE_SECONDS = 0.05


@contextmanager
def reading(settings: Mapping[str, Any], topic: str, offset: int) -> Iterator[Consumer]:
    """A consumer at a place of the topic's only partition."""
    consumer = Consumer(
        {
            **settings,
            "group.id": topic,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # The end is known and near: waiting for more would only cost time.
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        # Knowing the leader first saves a second that assigning would otherwise wait for it.
        consumer.list_topics(topic, timeout=READ_SECONDS)
        consumer.assign([TopicPartition(topic, 0, offset)])
        yield consumer
    finally:
        consumer.close()


def end_of(settings: Mapping[str, Any], topic: str, isolation: IsolationLevel) -> int:
    """The end of the only partition. A topic that was just created, or whose broker was, has no leader for a moment."""
    deadline = time.monotonic() + READ_SECONDS
    while True:
        try:
            # A client of before keeps asking the leader it knows, which may have been another.
            admin = open_admin(settings)
            return end_offsets(admin, [TopicPartition(topic, 0)], isolation)[topic, 0]
        except KafkaException as refused:
            error = error_of(refused)
            passing = may_work_later(error) or error.code() in MISSING
            if not passing or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
