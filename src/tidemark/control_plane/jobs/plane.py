"""What all parts of a running control plane share, and the times by which it judges drivers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tidemark.control_plane.jobs.bell import Bell
from tidemark.control_plane.jobs.observation import Observations
from tidemark.control_plane.jobs.variables import Variables
from tidemark.control_plane.launch.launcher import Launcher
from tidemark.control_plane.metrics import EpochMetrics
from tidemark.control_plane.store.database import Database
from tidemark.settings import Settings


@dataclass(frozen=True)
class Timing:
    """Seconds, and how many crashes without a committed epoch between them are too many."""

    heartbeat: float = 5.0
    own_start: float = 15.0  # no driver is judged silent so soon after the control plane's own start
    driver_start: float = 120.0
    stop: float = 600.0
    cancel: float = 15.0
    farewell: float = 15.0
    first_pause: float = 0.5
    longest_pause: float = 10.0
    crashes: int = 5
    tick: float = 0.25

    def pause(self, crashes: int) -> float:
        return min(self.first_pause * 2.0 ** (crashes - 1), self.longest_pause)


@dataclass
class Plane:
    """`base` is what relative paths in jobs mean; `address_file` tells drivers where the server is now."""

    database: Database
    launcher: Launcher
    settings: Settings
    base: Path
    address_file: Path
    variables: Variables
    timing: Timing = field(default_factory=Timing)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    observations: Observations = field(default_factory=Observations)
    bell: Bell = field(default_factory=Bell)
    wake: threading.Event = field(default_factory=threading.Event)
    metrics: EpochMetrics = field(default_factory=EpochMetrics)
    started: float = field(default_factory=time.monotonic)

    @property
    def uptime(self) -> float:
        return self.monotonic() - self.started

    @property
    def savepoints(self) -> Path:
        return self.settings.home / "savepoints"
