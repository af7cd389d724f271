"""What the control plane asks of whatever runs drivers. A started driver lives on when the control plane dies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tidemark.driver_log import DriverLog

Process = dict[str, Any]  # how a launcher finds a driver again, also after a restart; kept in the store


@dataclass(frozen=True)
class Launch:
    """One start; `mark` is unique to it."""

    spec: Path
    log: DriverLog
    mark: str
    environment: Mapping[str, str]


class Launcher(Protocol):
    def start(self, launch: Launch) -> Process:
        """Starts a driver and returns at once. Raises EnvironmentFault when that cannot be done here."""
        ...

    def is_running(self, process: Process) -> bool:
        """Whether the driver lives; also for one that an earlier control plane started."""
        ...

    def describe_end(self, process: Process) -> str:
        """How a driver that no longer runs ended, as far as that is known."""
        ...

    def kill(self, process: Process | None, mark: str) -> None:
        """Ends all that this start left, at once, and waits for it. Harmless when there is nothing left."""
        ...
