"""Messages that wait until the control plane has them: in order, numbered, and not more than memory allows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from tidemark.protocol.control import SentMessage
from tidemark.protocol.message import Message
from tidemark.protocol.messages import ConsoleLine, EpochCommitted

_MOST = 2000
_AT_ONCE = 200
# What a later message makes up for; all else is kept whatever happens.
_EXPENDABLE = (EpochCommitted, ConsoleLine)


def _now() -> datetime:
    return datetime.now(UTC)


class Outbox:
    """Safe to use from several threads; `send` never waits."""

    def __init__(self, most: int = _MOST, now: Callable[[], datetime] = _now) -> None:
        self._most = most
        self._now = now
        self._lock = threading.Lock()
        self._waiting: list[SentMessage] = []
        self._last = 0
        self.news = threading.Event()

    def send(self, message: Message) -> None:
        with self._lock:
            self._last += 1
            sent = SentMessage.model_validate({"seq": self._last, "at": self._now(), "message": message})
            self._waiting.append(sent)
            if len(self._waiting) > self._most:
                self._drop_oldest()
        self.news.set()

    def waiting(self) -> tuple[SentMessage, ...]:
        """The oldest ones, as many as go into one heartbeat."""
        with self._lock:
            return tuple(self._waiting[:_AT_ONCE])

    def acknowledge(self, seq: int) -> None:
        with self._lock:
            self._waiting = [sent for sent in self._waiting if sent.seq > seq]
            if self._waiting:
                self.news.set()

    def is_empty(self) -> bool:
        with self._lock:
            return not self._waiting

    def _drop_oldest(self) -> None:
        for index, sent in enumerate(self._waiting):
            if isinstance(sent.message, _EXPENDABLE):
                del self._waiting[index]
                return
