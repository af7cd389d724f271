"""The offsets of done epochs in a consumer group, for lag tools. The job itself never reads them.

One request is on its way at a time; while it is, only the newest offsets are kept. A failure is told in the log and
stops nothing.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

_LOG = logging.getLogger(__name__)
_REQUEST_SECONDS = 20.0
_CLOSE_SECONDS = 5.0

Positions = dict[str, dict[str, int]]


class GroupOffsets:
    def __init__(self, admin: AdminClient, group: str) -> None:
        self._admin = admin
        self._group = group
        self._lock = threading.Lock()
        self._sent: Future[Any] | None = None
        self._waiting: Positions | None = None
        self._complaint = ""

    def note(self, positions: Positions) -> None:
        """Returns at once."""
        with self._lock:
            self._waiting = positions
            if self._sent is None:
                self._send()

    def close(self) -> None:
        """Gives what is under way a moment to arrive."""
        while (sent := self._sent) is not None:
            try:
                sent.result(_CLOSE_SECONDS)
            except (KafkaException, TookTooLong):
                return

    def _send(self) -> None:
        positions, self._waiting = self._waiting or {}, None
        where = [
            TopicPartition(topic, int(partition), offset)
            for topic, offsets in positions.items()
            for partition, offset in offsets.items()
        ]
        request = [ConsumerGroupTopicPartitions(self._group, where)]
        try:
            (sent,) = self._admin.alter_consumer_group_offsets(request, request_timeout=_REQUEST_SECONDS).values()
        except KafkaException as refused:
            self._complain(str(refused))
            return
        self._sent = sent
        sent.add_done_callback(self._arrived)

    def _arrived(self, sent: Future[Any]) -> None:
        with self._lock:
            self._sent = None
            problem = sent.exception() or next(
                (each.error for each in sent.result().topic_partitions if each.error), ""
            )
            self._complain(str(problem))
            if self._waiting is not None:
                self._send()

    def _complain(self, problem: str) -> None:
        """Once for each new reason."""
        if problem and problem != self._complaint:
            _LOG.warning("the offsets could not be noted in the consumer group %s: %s", self._group, problem)
        self._complaint = problem
