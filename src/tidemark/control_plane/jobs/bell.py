"""Wakes requests that wait for something: threads ring, coroutines of the server's loop listen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Bell:
    """One bell for every job. A listener that is there before it looks misses nothing."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # `close` is called by a signal handler, maybe in the middle of `listening`
        self.closed = False
        self._listeners: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    @contextmanager
    def listening(self, job_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever the bell rings; called in the loop that waits for it."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._listeners.setdefault(job_id, set()).add(listener)
        try:
            yield listener[1]
        finally:
            with self._lock:
                self._listeners[job_id].discard(listener)
                if not self._listeners[job_id]:
                    del self._listeners[job_id]

    def ring(self, job_id: str) -> None:
        with self._lock:
            listeners = tuple(self._listeners.get(job_id, ()))
        _wake(listeners)

    def close(self) -> None:
        """Wakes everybody for the last time: the server is about to end."""
        self.closed = True
        with self._lock:
            listeners = tuple(listener for each in self._listeners.values() for listener in each)
        _wake(listeners)


def _wake(listeners: tuple[tuple[asyncio.AbstractEventLoop, asyncio.Event], ...]) -> None:
    for loop, event in listeners:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever listened
            loop.call_soon_threadsafe(event.set)
