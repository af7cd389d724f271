"""The offsets of done epochs in a consumer group, for lag tools. The job itself never reads them.

A thread of its own sends them, always the newest. A failure is told in the log and stops nothing.
"""

from __future__ import annotations

import logging
import threading

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tidemark.connectors.kafka.faults import error_of, may_work_later

_LOG = logging.getLogger(__name__)
_REQUEST_SECONDS = 20.0
_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 0.2

Positions = dict[str, dict[str, int]]


class GroupOffsets:
    def __init__(self, admin: AdminClient, group: str) -> None:
        self._admin = admin
        self._group = group
        self._changed = threading.Condition()
        self._newest: Positions | None = None
        self._closing = False
        self._complaint = ""
        self._thread: threading.Thread | None = None

    def note(self, positions: Positions) -> None:
        """Returns at once."""
        with self._changed:
            self._newest = positions
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"offsets of {self._group}", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Gives the newest a moment to arrive."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while (positions := self._next()) is not None:
            problem = self._send(positions)
            if problem is not None and may_work_later(problem):
                self._keep(positions)
            self._complain(problem)

    def _next(self) -> Positions | None:
        """Waits for something to send; None when nothing is left at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._closing)
            positions, self._newest = self._newest, None
            return positions

    def _keep(self, positions: Positions) -> None:
        """For another try after a moment, unless there is something newer by then."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None, _PAUSE_SECONDS)
            self._newest = self._newest or positions

    def _send(self, positions: Positions) -> KafkaError | None:
        where = [
            TopicPartition(topic, int(partition), offset)
            for topic, offsets in positions.items()
            for partition, offset in offsets.items()
        ]
        request = [ConsumerGroupTopicPartitions(self._group, where)]
        try:
            (sent,) = self._admin.alter_consumer_group_offsets(request, request_timeout=_REQUEST_SECONDS).values()
            return next((each.error for each in sent.result().topic_partitions if each.error), None)
        except KafkaException as refused:
            return error_of(refused)

    def _complain(self, problem: KafkaError | None) -> None:
        """Once for each new reason."""
        reason = problem.str() if problem is not None else ""
        if reason and reason != self._complaint:
            _LOG.warning("the offsets could not be noted in the consumer group %s: %s", self._group, reason)
        self._complaint = reason
