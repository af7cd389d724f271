"""The offsets of done epochs in a consumer group, for lag tools. The job itself never reads them.

A thread of its own sends them, always the newest. A failure is told in the log and stops nothing.
They go through a consumer that reads nothing: the administration's call for it ends the whole process (librdkafka
2.16) when brokers are gone for longer than its timeout and then come back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tidemark.connectors.kafka.faults import error_of, may_work_later

_LOG = logging.getLogger(__name__)
_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 0.2
# A consumer that waits for brokers knocks ten times a second and tells of each time; others tell of the outage.
_PATIENTLY = {"reconnect.backoff.ms": 1_000, "log_level": 2}

Positions = dict[str, dict[str, int]]


class GroupOffsets:
    def __init__(self, settings: Mapping[str, Any], group: str) -> None:
        self._settings = settings
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
        try:
            consumer = Consumer({**self._settings, **_PATIENTLY, "group.id": self._group, "enable.auto.commit": False})
        except KafkaException as refused:
            self._complain(error_of(refused))
            return
        while (positions := self._next()) is not None:
            problem = _send(consumer, positions)
            if problem is not None and may_work_later(problem):
                self._keep(positions)
            self._complain(problem)
        consumer.close()

    def _next(self) -> Positions | None:
        """Waits for something to send; None when nothing is left at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._closing)
            positions, self._newest = self._newest, None
            return positions

    def _keep(self, positions: Positions) -> None:
        """For another try after a moment, unless there is something newer by then, or it is the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._closing, _PAUSE_SECONDS)
            self._newest = self._newest or (None if self._closing else positions)

    def _complain(self, problem: KafkaError | None) -> None:
        """Once for each new reason."""
        reason = problem.str() if problem is not None else ""
        if reason and reason != self._complaint:
            _LOG.warning("the offsets could not be noted in the consumer group %s: %s", self._group, reason)
        self._complaint = reason


def _send(consumer: Consumer, positions: Positions) -> KafkaError | None:
    """Waits for brokers that are away."""
    where = [
        TopicPartition(topic, int(partition), offset)
        for topic, offsets in positions.items()
        for partition, offset in offsets.items()
    ]
    try:
        sent = consumer.commit(offsets=where, asynchronous=False)
        return next((each.error for each in sent or () if each.error), None)
    except KafkaException as refused:
        return error_of(refused)
