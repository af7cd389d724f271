"""What a run looks like: plain lines, the live table, colour only where it may be."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from tidemark.cli.live import LiveRenderer, progress_table
from tidemark.cli.progress import Progress, iso
from tidemark.cli.render import PlainRenderer
from tidemark.protocol.messages import (
    Accounting,
    ConsoleLine,
    EpochCommitted,
    OperatorCounts,
    SinkCounts,
    SourceCounts,
    SourceStatus,
    Started,
    Warned,
)

STARTED = Started(attempt=2, queries=("per_min",), recovered=True)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOTAL = Accounting(
    sources={"orders": SourceCounts(events_in=1200, accepted=1190, errors=10)},
    operators={"per_min": OperatorCounts(rows_in=1190, rows_out=5, passed=1183, late=7)},
    sinks={"out": SinkCounts(rows=5, refused=3)},
)


def epoch(number: int, query: str = "per_min", watermark: datetime | None = NOON, **more: Any) -> EpochCommitted:
    return EpochCommitted(
        query=query,
        epoch=number,
        events=500,
        duration_ms=250,
        watermark=None,
        next_watermark=watermark,
        lag_events=40,
        total=TOTAL,
        **more,
    )


def show(renderer: PlainRenderer | LiveRenderer, *messages: Any) -> Progress:
    progress = Progress("shop")
    with renderer:
        for message in messages:
            progress.hear(message)
            renderer.heard(message, progress)
        progress.state = "STOPPED"
        renderer.ended(progress)
    return progress


def test_plain_lines() -> None:
    out, console = io.StringIO(), io.StringIO()
    show(PlainRenderer(out, console), STARTED, ConsoleLine(sink="s", text="a row"), epoch(0))
    lines = [line.partition(" ")[2] for line in out.getvalue().splitlines()]
    assert lines == [
        "info shop goes on from its last committed epoch (attempt 2, 1 query)",
        "info query=per_min epoch=0 events_per_second=2000 watermark=2026-01-01T12:00:00Z"
        " in=1200 late=7 errors=10 lag=40",
        "info shop: STOPPED after 1 epoch",
        "info orders: in 1200 = accepted 1190 + errors 10",
        "info per_min: rows in 1190 = passed 1183 + late 7, rows out 5",
        "info out: rows written 5, refused 3",
    ]
    assert console.getvalue() == "a row\n"


def test_plain_lines_keep_their_pace() -> None:
    now = iter((0.0, 0.0, 0.4, 0.9, 1.0, 1.0, 1.5, 2.0, 2.0))
    out = io.StringIO()
    renderer = PlainRenderer(out, out, clock=lambda: next(now))
    show(renderer, *(epoch(number) for number in range(6)))
    assert [line.split("epoch=")[1].split()[0] for line in out.getvalue().splitlines() if "epoch=" in line] == [
        "0",
        "3",
        "5",
    ]


@pytest.mark.parametrize(("level", "lines"), [("debug", 7), ("info", 7), ("warning", 1), ("error", 0)])
def test_the_level_decides_what_is_shown(level: str, lines: int) -> None:
    out = io.StringIO()
    show(PlainRenderer(out, io.StringIO(), level), STARTED, Warned(code="w", message="m", step="s"), epoch(0))
    assert len(out.getvalue().splitlines()) == lines


def test_the_watermark_of_a_job_is_the_smallest_of_its_queries() -> None:
    progress = Progress("shop")
    assert progress.watermark is None
    progress.hear(epoch(0, "a"))
    progress.hear(epoch(0, "b", datetime(2026, 1, 1, 11, tzinfo=UTC)))
    assert iso(progress.watermark) == "2026-01-01T11:00:00Z"
    progress.hear(epoch(0, "c", None))
    assert progress.watermark is None


def screen(**options: Any) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=120, **options), out


def test_the_table_shows_every_part() -> None:
    progress = Progress("shop", state="RUNNING")
    progress.hear(STARTED)
    status = SourceStatus(watermark=NOON, idle=True, partitions=())
    progress.hear(epoch(7, sources={"orders": status}))
    console, out = screen()
    console.print(progress_table(progress))
    text = out.getvalue()
    for cells in (
        ("shop · RUNNING · attempt 2",),
        ("query per_min", "7", "2,000", "2026-01-01T12:00:00Z", "40"),
        ("source orders", "2026-01-01T12:00:00Z (idle)", "1,200", "10"),
        ("operator per_min", "5", "7"),
        ("sink out", "5", "3"),
    ):
        assert any(all(cell in line for cell in cells) for line in text.splitlines()), cells


def test_live_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    console, out = screen(force_terminal=True, color_system="standard")
    show(LiveRenderer(console, console_on_screen=True), STARTED, ConsoleLine(sink="s", text="[b]row[/b]"), epoch(1))
    assert "[b]row[/b]" in out.getvalue()
    assert "\x1b[32m" in out.getvalue()
    assert "STOPPED after 1 epoch" in out.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console, out = screen(force_terminal=True, color_system="standard")
    show(LiveRenderer(console, console_on_screen=True), STARTED, Warned(code="w", message="m"), epoch(1))
    assert "\x1b[32m" not in out.getvalue()
    assert "\x1b[33m" not in out.getvalue()


def test_console_rows_go_to_standard_output_when_that_is_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    console, out = screen(force_terminal=True)
    show(LiveRenderer(console, console_on_screen=False), ConsoleLine(sink="s", text="a row"))
    assert capsys.readouterr().out == "a row\n"
    assert "a row" not in out.getvalue()
