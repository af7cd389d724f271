"""`demo`: writes an hour of a shop's orders, runs the job over them, and shows results and accounting."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tidemark.cli.demo.shop import write_orders
from tidemark.cli.failures import FINE
from tidemark.cli.local import Request, supervise
from tidemark.cli.progress import Progress
from tidemark.cli.run import complain_of, renderer_for
from tidemark.compiler.compile import compile_job
from tidemark.settings import load_settings

ORDERS = 200_000
MINUTES = 60
BEST_CATEGORIES = """
    SELECT category, sum(orders), round(sum(revenue), 2), round(max(p95), 2)
    FROM sales_per_minute GROUP BY category ORDER BY 3 DESC LIMIT 5
"""
BEST_MINUTES = """
    SELECT window_start, category, orders, round(revenue, 2), buyers
    FROM sales_per_minute ORDER BY revenue DESC, window_start, category LIMIT 5
"""


def demo() -> int:
    """Starts from nothing every time; what it made stays in the folder that it names at its end."""
    settings = load_settings(Path.cwd())
    folder = settings.home / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    screen = Console()
    _say(screen, f"An hour of an online shop: writing {ORDERS:,} orders to {folder / 'orders'} …")
    lines = write_orders(folder / "orders", orders=ORDERS, minutes=MINUTES)
    definition = files(__package__).joinpath("job.yaml").read_text("utf-8")
    (folder / "job.yaml").write_text(definition, "utf-8")
    _say(screen, f"Running {folder / 'job.yaml'} over {lines:,} lines; Spark takes some seconds to start.")
    request = Request(definition, compile_job(definition).plan, folder, settings, until_drained=True, fresh=True)
    progress = supervise(request, renderer_for(settings, as_json=False))
    if progress.failure is not None:
        return complain_of(progress.failure)
    if progress.state == "FINISHED":
        show_results(screen, folder)
        show_accounting(screen, folder, progress, lines)
        show_next_steps(screen, folder)
    sys.stdout.flush()
    return FINE


def show_results(screen: Console, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        categories = database.execute(BEST_CATEGORIES).fetchall()
        minutes = database.execute(BEST_MINUTES).fetchall()
    screen.print(_table("Best categories of the hour", ("category", "orders", "revenue", "highest p95"), categories))
    screen.print(_table("Best minutes", ("minute", "category", "orders", "revenue", "buyers"), minutes))


def show_accounting(screen: Console, folder: Path, progress: Progress, lines: int) -> None:
    """Every line and row that went in, and where it is now: the job's own counts beside what the outputs hold."""
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        results, counted = database.execute("SELECT count(*), sum(orders) FROM sales_per_minute").fetchone()
    source = progress.total.sources["orders"]
    paid, once, window = (progress.total.operators[name] for name in ("paid", "once", "per_minute"))
    rows = (
        ("lines in the order files", source.events_in, lines),
        ("= accepted", source.accepted, None),
        ("+ broken", source.errors, _written(folder / "broken")),
        ("accepted, into the filter", paid.rows_in, None),
        ("= paid", paid.passed, None),
        ("+ not paid", paid.filtered, None),
        ("paid, into the dedup", once.rows_in, None),
        ("= first of their kind", once.passed, None),
        ("+ sent twice", once.duplicates, None),
        ("+ too late to compare", once.late, _written(folder / "very-late")),
        ("first ones, into the window", window.rows_in, None),
        ("= in time", window.passed, counted),
        ("+ late", window.late, _written(folder / "late")),
        ("results", window.rows_out, results),
    )
    screen.print(_table("Nothing disappears", ("", "counted by the job", "found in the files and tables"), rows))


def show_next_steps(screen: Console, folder: Path) -> None:
    _say(
        screen,
        f"What to try next:\n"
        f"  cd {folder}\n"
        f"  tidemark explain job.yaml                               # how the job is carried out\n"
        f"  head -n 3 late/*.jsonl                                  # late orders, with the window each one missed\n"
        f"  head -n 3 broken/*.jsonl                                # broken lines, with the reason\n"
        f"  tidemark run job.yaml --until-drained --fresh --json    # again, for a program to read",
    )


def _say(screen: Console, text: str) -> None:
    screen.print(text, highlight=False, markup=False, soft_wrap=True)


def _written(folder: Path) -> int:
    """Lines in the part files of a files sink; other names in its folder begin with `_` or `.`."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("[!_.]*.jsonl"))


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)
