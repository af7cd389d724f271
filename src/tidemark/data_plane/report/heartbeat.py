"""The driver's heartbeat: a thread that tells the control plane every second, and at once on news, how the job is.

It never slows the job: messages wait in an outbox, and the status is put together from what the driver knows.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from tidemark.data_plane.report.control_client import ControlClient
from tidemark.data_plane.report.outbox import Outbox
from tidemark.protocol.control import FENCED_EXIT_CODE, Heartbeat
from tidemark.protocol.status import DriverStatus

INTERVAL = 1.0
# Epochs may follow each other faster than anybody wants to hear of them.
_SHORTEST = 0.1


class HeartbeatThread:
    """`leave` ends the process: a newer attempt has taken over, so nothing may be finished."""

    def __init__(
        self,
        client: ControlClient,
        outbox: Outbox,
        status: Callable[[], DriverStatus],
        leave: Callable[[int], None] = os._exit,
        interval: float = INTERVAL,
    ) -> None:
        self._client = client
        self._outbox = outbox
        self._status = status
        self._leave = leave
        self._interval = interval
        self._started_at = datetime.now(UTC)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float) -> None:
        """Sends what is left, for as long as that takes, but not longer than `seconds`."""
        deadline = time.monotonic() + seconds
        self._closing.set()
        self._outbox.news.set()
        self._thread.join(seconds)
        while not self._thread.is_alive() and not self._outbox.is_empty() and time.monotonic() < deadline:
            if not self._beat():
                self._outbox.news.wait(_SHORTEST)
                self._outbox.news.clear()
        self._client.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._outbox.news.clear()
            self._beat()
            if not self._closing.wait(_SHORTEST):
                self._outbox.news.wait(self._interval - _SHORTEST)

    def _beat(self) -> bool:
        heartbeat = Heartbeat(
            pid=os.getpid(), started_at=self._started_at, messages=self._outbox.waiting(), status=self._status()
        )
        answer = self._client.heartbeat(heartbeat)
        if answer is None:
            return False
        if answer.fenced:
            self._leave(FENCED_EXIT_CODE)
        self._outbox.acknowledge(answer.acked_seq)
        return True
