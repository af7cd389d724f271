"""A reader of committed records that follows every output topic and ledger while everything around it is killed."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from faults.chaos.job import TOPICS, ledger_topic
from faults.chaos.witness import Witness

from tidemark.connectors.kafka.ledger import Marker

POLL_SECONDS = 0.2
LEDGERS = {ledger_topic(sink): sink for sink in TOPICS}
Place = tuple[str, int]


class CommittedReader:
    """`records` is everything it saw, by topic and partition; `markers` are those of each sink, in their order."""

    def __init__(self, servers: str, partitions: dict[str, int]) -> None:
        self.witness = Witness("Kafka")
        self.records: dict[Place, list[tuple[int, bytes]]] = defaultdict(list)
        self.markers: dict[str, list[Marker]] = defaultdict(list)
        self.reached: dict[Place, int] = {}
        self.failure: BaseException | None = None
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "chaos-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        places = [TopicPartition(topic, p, OFFSET_BEGINNING) for topic, n in partitions.items() for p in range(n)]
        self._consumer.assign(places)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()

    def has_reached(self, topic: str, ends: dict[int, int]) -> bool:
        return all(self.reached.get((topic, partition), 0) >= end for partition, end in ends.items())

    def newest_marker(self, sink: str) -> Marker | None:
        return self.markers[sink][-1] if self.markers[sink] else None

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                message = self._consumer.poll(POLL_SECONDS)
                if message is not None:
                    self._take(message)
        except BaseException as failure:
            self.failure = failure
            raise

    def _take(self, message: Any) -> None:
        place, error = (message.topic(), message.partition()), message.error()
        if error is None:
            self._see(place, message.offset(), message.value())
            self.reached[place] = message.offset() + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            # Past the marks of ended transactions, which are no records.
            self.reached[place] = message.offset()

    def _see(self, place: Place, offset: int, value: bytes) -> None:
        self.records[place].append((offset, value))
        if (sink := LEDGERS.get(place[0])) is not None:
            marker = Marker.from_bytes(value)
            self.markers[sink].append(marker)
            self.witness.see_attempt(sink, marker.attempt)
        else:
            self.witness.see(place[0], json.loads(value))
