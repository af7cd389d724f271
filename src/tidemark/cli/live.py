"""The live table of a run on a terminal: one block per query, source and sink, redrawn in place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidemark.cli.progress import Progress, iso, rate
from tidemark.cli.render import accounting_lines, counted, started_text, warning_text
from tidemark.protocol.messages import AnyMessage, ConsoleLine, EpochCommitted, SourceStatus, Started, Warned

REDRAWS_PER_SECOND = 4
HEADINGS = ("epoch", "events/s", "watermark", "lag", "rows", "late", "errors")


class LiveRenderer:
    """Draws on `screen`; a console sink's lines go above the table, or to standard output when that is elsewhere."""

    def __init__(self, screen: Console, *, console_on_screen: bool) -> None:
        self._screen = screen
        self._console_on_screen = console_on_screen
        self._live = Live(
            Text("starting Spark …"),
            console=screen,
            refresh_per_second=REDRAWS_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def heard(self, message: AnyMessage, progress: Progress) -> None:
        match message:
            case ConsoleLine() if self._console_on_screen:
                self._screen.print(message.text, markup=False, highlight=False, soft_wrap=True)
            case ConsoleLine():
                print(message.text, file=sys.stdout, flush=True)
            case Started():
                self._live.update(Text(started_text(message, progress)))
            case Warned():
                self.notice(warning_text(message))
            case EpochCommitted():
                self._live.update(progress_table(progress))

    def notice(self, text: str) -> None:
        self._screen.print(Text(text, style="yellow"))

    def ended(self, progress: Progress) -> None:
        if progress.last:
            self._live.update(progress_table(progress))
        style = "red" if progress.failure else "green"
        headline = f"{progress.job}: {progress.state} after {counted(progress.epochs, 'epoch')}"
        self._screen.print(Text(headline, style=style))
        for line in accounting_lines(progress):
            self._screen.print(Text(f"  {line}"))


def progress_table(progress: Progress) -> Table:
    table = Table(title=f"{progress.job} · {progress.state} · attempt {progress.attempt}", title_justify="left")
    table.add_column("part")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for name, cells in _rows(progress):
        table.add_row(name, *(cells.get(heading, "") for heading in HEADINGS))
    return table


def _rows(progress: Progress) -> Iterator[tuple[str, dict[str, str]]]:
    for query, epoch in progress.last.items():
        yield f"query {query}", _query_cells(epoch)
    statuses = _sources(progress)
    for name, source in progress.total.sources.items():
        watermark = _watermark(statuses[name]) if name in statuses else ""
        cells = {"watermark": watermark, "rows": f"{source.events_in:,}", "errors": f"{source.errors:,}"}
        yield f"source {name}", cells
    for name, operator in progress.total.operators.items():
        yield f"operator {name}", {"rows": f"{operator.rows_out:,}", "late": f"{operator.late:,}"}
    for name, sink in progress.total.sinks.items():
        refused = {"errors": f"{sink.refused:,}"} if sink.refused else {}
        yield f"sink {name}", {"rows": f"{sink.rows:,}", **refused}


def _query_cells(epoch: EpochCommitted) -> dict[str, str]:
    return {
        "epoch": str(epoch.epoch),
        "events/s": f"{rate(epoch):,.0f}",
        "watermark": iso(epoch.next_watermark or epoch.watermark) or "none",
        "lag": "" if epoch.lag_events is None else f"{epoch.lag_events:,}",
    }


def _sources(progress: Progress) -> dict[str, SourceStatus]:
    return {name: status for epoch in progress.last.values() for name, status in epoch.sources.items()}


def _watermark(status: SourceStatus) -> str:
    return f"{iso(status.watermark) or 'none'}{' (idle)' if status.idle else ''}"
