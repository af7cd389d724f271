"""The jobs of the scripted day, the events they are fed while it goes on, and what must have come out by its end.

Events are a function of the number of their batch alone. The oracle is plain Python over the same events.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BATCH_TIME = timedelta(seconds=10)
ORDERS, CLICKS, TICKS = 40, 20, 100
BROKEN = '{"batch": 1, "store": '
STRICT = 30
ALL_ORDERS = "amount > 0"
COUNTS = "events: count(), revenue: sum(amount)"
WITH_BIGGEST = f"{COUNTS}, biggest: max(amount)"


@dataclass(frozen=True)
class Shape:
    """What the day changes about a job."""

    parallelism: int = 2
    where: str = ALL_ORDERS
    aggregate: str = COUNTS


def strict_from(batch: int) -> str:
    """A filter that is stricter from a batch on that has not been fed yet, so that it is known what it lets pass."""
    return f"{ALL_ORDERS} AND (batch < {batch} OR amount > {STRICT})"


ORDERS_SOURCE = """\
  orders:
    files: {path: in/orders, format: jsonl, max_files_per_epoch: 20}
    schema: {batch: long, order_id: string, store: string, user: string, amount: long, ts: timestamp}
    event_time: ts
    watermark: {delay: 5s, idle_timeout: 1h}
"""


def narrow(shape: Shape) -> str:
    """One source, one window, one sink."""
    return f"""\
tidemark: 1
name: narrow
parallelism: {shape.parallelism}
epoch: {{interval: 1s}}
sources:
{ORDERS_SOURCE}operators:
  valid: {{type: filter, input: orders, where: "{shape.where}"}}
  per_minute: {{type: window, input: valid, key: [store], window: {{tumbling: 1m}}, aggregate: {{{shape.aggregate}}}}}
sinks:
  out: {{input: per_minute, files: {{path: narrow, format: jsonl}}}}
"""


def wide(shape: Shape) -> str:
    """Two sources, two terminal operators, three sinks."""
    return f"""\
tidemark: 1
name: wide
parallelism: {shape.parallelism}
epoch: {{interval: 1s}}
sources:
{ORDERS_SOURCE}  clicks:
    files: {{path: in/clicks, format: jsonl, max_files_per_epoch: 20}}
    schema: {{store: string, amount: long, ts: timestamp}}
    event_time: ts
    watermark: {{delay: 5s, idle_timeout: 1h}}
operators:
  valid: {{type: filter, input: orders, where: "{shape.where}"}}
  bought: {{type: map, input: valid, select: {{store: store, amount: amount}}}}
  clicked: {{type: map, input: clicks, select: {{store: store, amount: amount}}}}
  activity: {{type: union, inputs: [bought, clicked]}}
  per_minute:
    type: window
    input: activity
    key: [store]
    window: {{tumbling: 1m}}
    aggregate: {{{shape.aggregate}}}
  moving:
    type: window
    input: valid
    key: [user]
    window: {{sliding: 2m, every: 1m}}
    aggregate: {{orders: count()}}
sinks:
  out: {{input: per_minute, files: {{path: wide, format: jsonl}}}}
  moving_log: {{input: moving, sqlite: {{path: wide.db, table: moving, mode: append}}}}
  bad: {{input: orders.errors, files: {{path: wide_bad, format: jsonl}}}}
"""


def ticks(start: datetime) -> str:
    """Generated events at their own pace; nothing is done to this job."""
    return f"""\
tidemark: 1
name: ticks
parallelism: 2
epoch: {{interval: 1s}}
sources:
  ticks:
    generator: {{rate: {TICKS}, start: "{start:%Y-%m-%dT%H:%M:%SZ}", partitions: 2, columns: {{num: n}}}}
    schema: {{num: long}}
    watermark: {{delay: 0s}}
operators:
  per_second:
    type: window
    input: ticks
    window: {{tumbling: 1s}}
    aggregate: {{c: count(), low: min(num)}}
sinks:
  out: {{input: per_second, sqlite: {{path: ticks.db, table: ticks, mode: append}}}}
"""


# --- the feed ---------------------------------------------------------------------------------------------------------


def orders_of(batch: int) -> list[Row]:
    """Out of order by less than the watermark's delay."""
    first = START + batch * BATCH_TIME
    return [
        {
            "batch": batch,
            "order_id": f"{batch}-{number}",
            "store": f"s{number % 4}",
            "user": f"u{(batch + number) % 5}",
            "amount": (batch * 7 + number * 13) % 101 - 10,
            "ts": first + BATCH_TIME * number / ORDERS - timedelta(seconds=number % 4),
        }
        for number in range(ORDERS)
    ]


def clicks_of(batch: int) -> list[Row]:
    first = START + batch * BATCH_TIME
    return [
        {"store": f"s{number % 3}", "amount": number % 2, "ts": first + BATCH_TIME * number / CLICKS}
        for number in range(CLICKS)
    ]


class Feed:
    """Writes a batch of orders and one of clicks at every turn, each as a file that appears whole."""

    def __init__(self, folder: Path, seconds: float = 1.0) -> None:
        self._folder = folder / "in"
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._limit: int | None = None
        self.batches = 0
        for name in ("orders", "clicks"):
            (self._folder / name).mkdir(parents=True)

    def start(self) -> None:
        self._thread.start()

    def hold_at(self, batch: int | None) -> None:
        """Feeds up to that batch and waits there; None lets it go on."""
        self._limit = batch

    def close(self) -> None:
        """One last event of each kind, so late that the windows of all others close."""
        self.stop()
        last = {"store": "end", "user": "end", "amount": 99, "batch": self.batches, "order_id": "end"}
        far = {**last, "ts": START + (self.batches + 360) * BATCH_TIME}
        self._write("orders", [far])
        self._write("clicks", [far])

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            if self._limit is None or self.batches < self._limit:
                broken = [BROKEN] if self.batches % 5 == 0 else []
                self._write("orders", orders_of(self.batches), broken)
                self._write("clicks", clicks_of(self.batches))
                self.batches += 1

    def _write(self, name: str, rows: list[Row], more: list[str] | None = None) -> None:
        lines = [json.dumps(row, default=iso) for row in rows] + (more or [])
        hidden = self._folder / f".{name}-{self.batches:06d}"
        hidden.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(hidden, self._folder / name / f"{self.batches:06d}.jsonl")


# --- the oracle -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Oracle:
    """What a job that nobody disturbed would have put out for that many batches."""

    batches: int
    strict_from: int | None = None

    def per_minute(self, *, clicks: bool) -> list[Row]:
        kept: dict[tuple[str, datetime], list[int]] = defaultdict(list)
        for row in [*self._orders(), *(self._clicks() if clicks else ())]:
            kept[row["store"], _minute(row["ts"])].append(row["amount"])
        return [
            _window(begin, MINUTE, store=store, events=len(held), revenue=sum(held), biggest=max(held))
            for (store, begin), held in kept.items()
        ]

    def moving(self) -> list[Row]:
        counts: Counter[tuple[str, datetime]] = Counter()
        for row in self._orders():
            begin = _minute(row["ts"])
            counts.update([(row["user"], begin), (row["user"], begin - MINUTE)])
        return [_window(begin, 2 * MINUTE, user=user, orders=orders) for (user, begin), orders in counts.items()]

    def bad(self) -> int:
        return len(range(0, self.batches, 5))

    def _orders(self) -> Iterator[Row]:
        for batch in range(self.batches):
            strict = self.strict_from is not None and batch >= self.strict_from
            yield from (row for row in orders_of(batch) if row["amount"] > (STRICT if strict else 0))

    def _clicks(self) -> Iterator[Row]:
        for batch in range(self.batches):
            yield from clicks_of(batch)


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _window(begin: datetime, size: timedelta, **values: Any) -> Row:
    return {**values, "window_start": iso(begin), "window_end": iso(begin + size)}


def iso(moment: datetime) -> str:
    text = moment.isoformat(timespec="microseconds")
    return text.replace(".000000", "").replace("+00:00", "Z")


# --- what the sinks hold ----------------------------------------------------------------------------------------------


def file_rows(folder: Path) -> list[Row]:
    parts = sorted(folder.glob("[!_.]*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text(encoding="utf-8").splitlines()]


def table_rows(database: Path, table: str) -> list[Row]:
    if not database.exists():
        return []
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')]


def differences(found: list[Row], expected: list[Row], *ignored: str) -> str:
    """Empty when both hold the same rows the same number of times, whatever their order."""

    def counted(rows: list[Row]) -> Counter[str]:
        kept = ({name: row[name] for name in sorted(row) if name not in ignored} for row in rows)
        return Counter(json.dumps(row) for row in kept)

    have, want = counted(found), counted(expected)
    missing, surplus = want - have, have - want
    if not missing and not surplus:
        return ""
    example = next(iter(missing or surplus))
    return f"{missing.total()} rows missing, {surplus.total()} too many, such as {example}"


def tick_differences(folder: Path) -> tuple[str, str]:
    """The first window begins when the job does, and so is as long as the others."""
    rows = sorted(table_rows(folder / "ticks.db", "ticks"), key=lambda row: str(row["window_start"]))
    found = [{"c": row["c"], "low": row["low"]} for row in rows]
    wrong = differences(found, [{"c": TICKS, "low": number * TICKS} for number in range(len(rows))])
    return wrong or ("" if len(rows) > 10 else "hardly any windows"), f"{len(rows)} rows"
