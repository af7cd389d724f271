"""Keeps one job running: starts its driver, follows it, starts a new attempt when it crashes, stops it when asked.

Whether an end is a crash is decided from the driver's last message and exit code alone. What a crash costs (which
epoch is replayed) is the data plane's concern.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from pydantic import ValidationError

from tidemark.cli.driver_process import DriverProcess
from tidemark.errors import Domain, EngineFault, Retry
from tidemark.protocol.messages import (
    AnyMessage,
    DriverMessage,
    Ended,
    EpochCommitted,
    Failed,
    Failure,
    Started,
    Warned,
)
from tidemark.redaction import Redactor

TICK = 0.1
INTERRUPTED = (-signal.SIGINT, 128 + signal.SIGINT)


@dataclass(frozen=True)
class Patience:
    """Seconds of back-off and of waiting for an orderly end; how many crashes in a row are too many."""

    first_pause: float = 0.5
    longest_pause: float = 10.0
    crashes: int = 5
    farewell: float = 15.0

    def pause(self, crashes: int) -> float:
        return min(self.first_pause * 2.0 ** (crashes - 1), self.longest_pause)


class Observer(Protocol):
    """Told what happens, in order."""

    def hear(self, message: AnyMessage) -> None: ...

    def notice(self, text: str) -> None: ...


class StopRequest:
    """How often the user asked for a stop: once means at the end of the epoch, twice means at once."""

    def __init__(self) -> None:
        self.count = 0
        self._asked = threading.Event()

    def ask(self) -> None:
        self.count += 1
        self._asked.set()

    def wait(self, seconds: float) -> None:
        """Waits, unless a stop is asked for."""
        self._asked.wait(seconds)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Turns SIGINT and SIGTERM into requests; outside the main thread signals are left to the program."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.ask()


@dataclass
class Heard:
    """What passed between the supervisor and one attempt, as far as its end depends on it."""

    started: bool = False
    committed: bool = False
    last_word: Ended | Failed | None = None
    last_word_at: float = 0.0
    stops_sent: int = 0
    garbage: int = 0

    def hear(self, message: AnyMessage) -> None:
        match message:
            case Started():
                self.started = True
            case EpochCommitted():
                self.committed = True
            case Ended() | Failed():
                self.last_word = message
                self.last_word_at = time.monotonic()


@dataclass(frozen=True)
class End:
    """How an attempt, or the whole run, ended."""

    state: str
    failure: Failure | None = None
    crashed: bool = False


@dataclass
class Supervisor:
    """`start` takes a new attempt number each time it is called.

    `redactor` keeps secrets, as they are at that moment, out of what a driver says.
    """

    start: Callable[[], DriverProcess]
    observer: Observer
    stop: StopRequest
    log_hint: str
    patience: Patience = field(default_factory=Patience)
    redactor: Callable[[], Redactor] = lambda: Redactor({})

    def run(self) -> End:
        crashes: list[Failure] = []
        while self.stop.count == 0:
            heard, end = self._one_attempt()
            if not end.crashed or end.failure is None:
                return end
            if heard.committed:
                crashes.clear()
            crashes.append(end.failure)
            if len(crashes) >= self.patience.crashes:
                return End("FAILED", crashes[0])
            pause = self.patience.pause(len(crashes))
            self.observer.notice(f"{end.failure.message}; a new attempt starts in {pause:g} s")
            self.stop.wait(pause)
        return End("STOPPED")

    def _one_attempt(self) -> tuple[Heard, End]:
        heard, redactor = Heard(), self.redactor()
        driver = self.start()
        try:
            self._follow(driver, heard, redactor)
            for line in driver.read_rest():
                self._take(line, heard, redactor)
        finally:
            exit_code = driver.end(grace=self.patience.farewell if isinstance(heard.last_word, Ended) else 0)
        return heard, judge(exit_code, heard, self.log_hint)

    def _follow(self, driver: DriverProcess, heard: Heard, redactor: Redactor) -> None:
        while not driver.has_exited() and not self._overdue(heard):
            if self.stop.count > heard.stops_sent:
                self._pass_on_stop(driver, heard)
            for line in driver.read(TICK):
                self._take(line, heard, redactor)

    def _pass_on_stop(self, driver: DriverProcess, heard: Heard) -> None:
        heard.stops_sent = self.stop.count
        if self.stop.count == 1:
            self.observer.notice("stopping at the end of the epoch; ask again to stop at once")
            driver.interrupt()
        else:
            driver.kill()

    def _overdue(self, heard: Heard) -> bool:
        return heard.last_word is not None and time.monotonic() > heard.last_word_at + self.patience.farewell

    def _take(self, line: bytes, heard: Heard, redactor: Redactor) -> None:
        try:
            message = DriverMessage.validate_json(line)
        except ValidationError:
            heard.garbage += 1
            if heard.garbage == 1:
                said = redactor.text(line.decode(errors="replace"))
                self.observer.notice(f"the driver said something that is no message: {said[:80]!r}")
            return
        if isinstance(message, Failed | Warned):
            message = type(message).model_validate(redactor.data(message.model_dump()))
        heard.hear(message)
        self.observer.hear(message)


def judge(exit_code: int, heard: Heard, log_hint: str) -> End:
    """Done, failed for good, or crashed: the whole decision."""
    match heard.last_word:
        case Ended(state=state):
            return End(state)
        case Failed(failure=failure):
            return End("FAILED", failure, crashed=may_restart(failure) and heard.stops_sent == 0)
    if heard.stops_sent > 1:
        return End("FAILED", _crash("the driver was killed before the end of its epoch, as asked", log_hint))
    if heard.stops_sent and (not heard.started or exit_code in INTERRUPTED):
        return End("STOPPED")
    return End("FAILED", _crash(_describe(exit_code), log_hint), crashed=heard.stops_sent == 0)


def may_restart(failure: Failure) -> bool:
    return failure.retry != Retry.NEVER and failure.domain != Domain.USER


def _describe(exit_code: int) -> str:
    if exit_code < 0:
        return f"the driver was killed by {signal.Signals(-exit_code).name}"
    return f"the driver ended with exit code {exit_code} and no last word"


def _crash(message: str, log_hint: str) -> Failure:
    return Failure(
        code=EngineFault.code, domain=EngineFault.domain, retry=EngineFault.retry, message=message, hint=log_hint
    )
