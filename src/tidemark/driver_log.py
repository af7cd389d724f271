"""The way of a driver's output into its log: through a small process that rotates the log and masks secrets.

That process (`log_writer.py`) belongs to the driver, not to whoever started both: it ends when the last process that
could write to it has ended.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOG_WRITER = Path(__file__).with_name("log_writer.py")
LARGEST = 10 * 1024 * 1024
_KEPT = 3
_TO_RUN = ("LD_LIBRARY_PATH", "PATH")


@dataclass(frozen=True)
class DriverLog:
    """`secrets` are the names whose values must not get there: they are in the environment, or in the file `stored`."""

    path: Path
    stored: Path
    secrets: tuple[str, ...] = ()

    def start_writer(self, environment: Mapping[str, str], largest: int = LARGEST) -> subprocess.Popen[bytes]:
        """Whoever starts it gives its standard input to the driver, and lets go of it."""
        command = [sys.executable, "-I", str(LOG_WRITER), str(self.path), str(largest), str(_KEPT)]
        return subprocess.Popen(
            [*command, str(self.stored), *self.secrets],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: environment[name] for name in (*self.secrets, *_TO_RUN) if name in environment},
        )
