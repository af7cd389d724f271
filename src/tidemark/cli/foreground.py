"""A server of `dev …` in the foreground: its address on standard output, then it runs until Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Protocol, TypeVar

from tidemark.cli.failures import FINE
from tidemark.errors import UsageError


class Server(Protocol):
    def wait(self) -> int:
        """Until it ends by itself."""


S = TypeVar("S", bound=Server)


def run_in_foreground(name: str, server: AbstractContextManager[S], address: Callable[[S], str], log: Path) -> int:
    """The server ends with this command; one that ends before it is an error that names its log."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with server as running:
            print(address(running), flush=True)
            running.wait()
    except KeyboardInterrupt:
        return FINE
    raise UsageError(f"{name} ended by itself", hint=f"see {log}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
