"""What is known about running drivers and not worth a disk write: when each last spoke, its status, how its lag went.

Lost when the control plane dies, and back with the next heartbeat.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from tidemark.protocol.status import DriverStatus

_SAMPLES = 300
_SAMPLE_SECONDS = 1.0


@dataclass(frozen=True)
class Sample:
    """At one moment (of a clock that only runs forward): events waiting, and taken in since the job began."""

    at: float
    lag_events: int
    events_in: int


@dataclass
class Observation:
    """One attempt. `heard_at` and `ended_at` are of a clock that only runs forward."""

    attempt: int
    seen_since: float
    heard_at: float | None = None
    ended_at: float | None = None
    committed: bool = False
    acked_seq: int = 0
    status: DriverStatus | None = None
    history: deque[Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def hear(self, now: float, status: DriverStatus | None) -> None:
        self.heard_at = now
        if status is None:
            return
        self.status = status
        lag = status.lag_events
        if lag is not None and (not self.history or now - self.history[-1].at >= _SAMPLE_SECONDS):
            taken = sum(source.events_in for source in status.total.sources.values())
            self.history.append(Sample(now, lag, taken))


class Observations:
    """The newest attempt of each job. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_job: dict[str, Observation] = {}

    def of(self, job_id: str, attempt: int, now: float) -> Observation:
        """That of this attempt, begun now when there is none; one of an older attempt is forgotten."""
        with self._lock:
            known = self._by_job.get(job_id)
            if known is None or known.attempt < attempt:
                known = self._by_job[job_id] = Observation(attempt, seen_since=now)
            return known

    def find(self, job_id: str) -> Observation | None:
        with self._lock:
            return self._by_job.get(job_id)

    def forget(self, job_id: str) -> None:
        with self._lock:
            self._by_job.pop(job_id, None)
