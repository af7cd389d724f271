"""Commands of the control plane: fetched by long poll, carried out one after the other, answered until it is heard."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tidemark.data_plane.report.classify import classify
from tidemark.data_plane.report.control_client import ControlClient
from tidemark.protocol.control import CommandResult, StateGet, Stop, TakeSavepoint
from tidemark.protocol.messages import Failure

_LOG = logging.getLogger(__name__)
_WAIT = 20.0
_PAUSE = 1.0
AnyCommand = Stop | TakeSavepoint | StateGet
# What a command did, or None when its answer comes later.
Carry = Callable[[AnyCommand], dict[str, Any] | None]


class CommandThread:
    """`carry_out` may be given a command twice, after a crash; an exception of it is the command's failure."""

    def __init__(self, client: ControlClient, carry_out: Carry, wait: float = _WAIT, pause: float = _PAUSE) -> None:
        self._client = client
        self._carry_out = carry_out
        self._wait = wait
        self._pause = pause
        self._last = 0
        self._unheard: list[CommandResult] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """No command is begun after this; a poll that is under way is left to end by itself."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._deliver()
            answer = self._client.commands(self._last, 0.0 if self._unheard else self._wait)
            if answer is None or self._unheard:
                self._closing.wait(self._pause)
            for command in answer.commands if answer else ():
                if command.id > self._last and not self._closing.is_set():
                    self._last = command.id
                    self._take(command)

    def _take(self, command: AnyCommand) -> None:
        result = result_of(command.id, lambda: self._carry_out(command))
        if result is not None:
            self._unheard.append(result)

    def _deliver(self) -> None:
        self._unheard = [result for result in self._unheard if not self._client.result(result)]


def result_of(command_id: int, carry_out: Callable[[], dict[str, Any] | None]) -> CommandResult | None:
    """What to answer to a command, whatever came of it."""
    try:
        done = carry_out()
    except Exception as problem:
        _LOG.exception("command %d failed", command_id)
        return CommandResult(id=command_id, ok=False, failure=Failure.of(classify(problem)))
    return None if done is None else CommandResult(id=command_id, ok=True, result=done)
