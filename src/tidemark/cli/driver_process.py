"""One driver process as its supervisor sees it: start, messages, signals, end, and nothing of it left behind.

The driver leads a session of its own, so a Ctrl-C at the terminal does not reach it directly. Its standard input
is a pipe held by this process: when this process dies, however it dies, the driver sees the pipe close.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tidemark.driver_log import DriverLog
from tidemark.processes import MARK, kill_marked, marked

DRIVER = (sys.executable, "-m", "tidemark.data_plane")
REPORT_FD = "TIDEMARK_REPORT_FD"
LONGEST_LINE = 16 * 1024 * 1024
READ_SIZE = 256 * 1024
LOG_SECONDS = 10.0


class DriverProcess:
    """`mark` is unique to this start and inherited by all that the driver starts: it says what may be killed."""

    def __init__(
        self, command: Sequence[str], spec: Path, *, log: DriverLog, mark: str, environment: Mapping[str, str]
    ) -> None:
        self.mark = mark
        self._buffer = b""
        self._log_writer = log.start_writer(os.environ)
        assert self._log_writer.stdin is not None
        self._report, report_end = os.pipe()
        os.set_blocking(self._report, False)
        try:
            with self._log_writer.stdin as log_end:
                self._process = subprocess.Popen(
                    [*command, str(spec)],
                    stdin=subprocess.PIPE,
                    stdout=log_end,
                    stderr=log_end,
                    pass_fds=(report_end,),
                    start_new_session=True,
                    env={**os.environ, **environment, REPORT_FD: str(report_end), MARK: mark},
                )
        except OSError:
            os.close(self._report)
            self._log_writer.wait()
            raise
        finally:
            os.close(report_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self, timeout: float) -> list[bytes]:
        """The whole lines reported by now, waiting up to `timeout` for the first of them."""
        return self._whole_lines(self._receive(timeout))

    def read_rest(self) -> Iterator[bytes]:
        """What was reported before the driver's end; half a line is no message and is left out."""
        while chunk := self._receive(0):
            yield from self._whole_lines(chunk)

    def _receive(self, timeout: float) -> bytes:
        ready, _, _ = select.select([self._report], [], [], timeout)
        chunk = os.read(self._report, READ_SIZE) if ready else b""
        if ready and not chunk:
            time.sleep(timeout)
        return chunk

    def _whole_lines(self, chunk: bytes) -> list[bytes]:
        *lines, rest = (self._buffer + chunk).split(b"\n")
        self._buffer = rest if len(rest) <= LONGEST_LINE else b""
        return lines

    def has_exited(self) -> bool:
        """Leaves the process unreaped, so that its id cannot come to mean another process meanwhile."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def interrupt(self) -> None:
        """Asks for a stop at the end of the epoch."""
        os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        kill_marked(self.mark)

    def end(self, grace: float) -> int:
        """Gives what the driver started `grace` seconds to end by itself, kills the rest; the driver's exit code."""
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and not (self.has_exited() and not any(marked(self.mark))):
            time.sleep(0.05)
        self.kill()
        if self._process.stdin:
            self._process.stdin.close()
        os.close(self._report)
        code = self._process.wait()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._log_writer.wait(LOG_SECONDS)
        return code
