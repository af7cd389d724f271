"""Shows a run while it goes: plain log lines, at most one a second besides what matters. `live.py` has the table.

Progress goes to the first stream, lines of console sinks to the second; they may be the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self, TextIO

from tidemark.cli.progress import Progress, iso
from tidemark.protocol.messages import AnyMessage, ConsoleLine, EpochCommitted, Started, Warned

SECONDS_BETWEEN_LINES = 1.0
LEVELS = ("debug", "info", "warning", "error")


class Renderer(Protocol):
    """Shown what happens, in order, inside its own `with`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def heard(self, message: AnyMessage, progress: Progress) -> None: ...

    def notice(self, text: str) -> None: ...

    def ended(self, progress: Progress) -> None: ...


class PlainRenderer:
    """`level` is the least important kind of line that is shown; lines of console sinks always are."""

    def __init__(
        self, out: TextIO, console: TextIO, level: str = "info", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._console = console
        self._threshold = LEVELS.index(level)
        self._clock = clock
        self._next_line_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.flush()

    def heard(self, message: AnyMessage, progress: Progress) -> None:
        match message:
            case ConsoleLine():
                print(message.text, file=self._console, flush=True)
            case Started():
                self._log("info", started_text(message, progress))
            case Warned():
                self.notice(warning_text(message))
            case EpochCommitted() if self._clock() >= self._next_line_at:
                self._next_line_at = self._clock() + SECONDS_BETWEEN_LINES
                self._log("info", epoch_text(message, progress))

    def notice(self, text: str) -> None:
        self._log("warning", text)

    def ended(self, progress: Progress) -> None:
        self._log("info", f"{progress.job}: {progress.state} after {counted(progress.epochs, 'epoch')}")
        for line in accounting_lines(progress):
            self._log("info", line)

    def _log(self, level: str, text: str) -> None:
        if LEVELS.index(level) >= self._threshold:
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            print(f"{stamp} {level} {text}", file=self._out, flush=True)


def started_text(message: Started, progress: Progress) -> str:
    how = "goes on from its last committed epoch" if message.recovered else "starts"
    return f"{progress.job} {how} (attempt {message.attempt}, {counted(len(message.queries), 'query')})"


def warning_text(message: Warned) -> str:
    return f"{message.step}: {message.message}" if message.step else message.message


def epoch_text(message: EpochCommitted, progress: Progress) -> str:
    parts = [
        f"query={message.query}",
        f"epoch={message.epoch}",
        f"events_per_second={progress.events_per_second:.0f}",
        f"watermark={iso(progress.watermark) or 'none'}",
        f"in={progress.events_in}",
        f"late={progress.late}",
        f"errors={progress.errors}",
    ]
    if progress.lag_events is not None:
        parts.append(f"lag={progress.lag_events}")
    return " ".join(parts)


def accounting_lines(progress: Progress) -> Iterator[str]:
    """The identity of every source and operator, with its numbers."""
    for name, source in progress.total.sources.items():
        yield f"{name}: in {source.events_in} = accepted {source.accepted} + errors {source.errors}"
    for name, operator in progress.total.operators.items():
        withheld = {"filtered": operator.filtered, "duplicates": operator.duplicates, "late": operator.late}
        terms = "".join(f" + {word} {number}" for word, number in withheld.items() if number)
        yield f"{name}: rows in {operator.rows_in} = passed {operator.passed}{terms}, rows out {operator.rows_out}"
    for name, sink in progress.total.sinks.items():
        yield f"{name}: rows written {sink.rows}{f', refused {sink.refused}' if sink.refused else ''}"


def counted(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
