"""The job of the recovery tests: two sources, two terminal operators, three sinks on them, late and error sinks.

All input is there before the first start and epochs take a file each, so every run has the same epochs. A row is
late by several epochs or not at all: an epoch that takes in two files, after a kill in between, judges it the same.
"""

from __future__ import annotations

import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

NAME = "shop"
QUERIES = ("per_minute", "visits")
FILES = 4
ROWS_PER_FILE = 40
PARTITIONS = 3
LATE = (5, 5, 6, 6, 60, 60, 61, 61)
FIRST_LATE = 2
START = datetime(2026, 1, 1, tzinfo=UTC)
JOB = f"""\
tidemark: 1
name: {NAME}
parallelism: 2
epoch: {{max_events: 100}}
sources:
  orders:
    files: {{path: in, format: jsonl, max_files_per_epoch: 1, partition: shard, partitions: {PARTITIONS}}}
    schema: {{order_id: string, store: string, user: string, amount: long, shard: int, ts: timestamp}}
    event_id: order_id
    event_time: ts
    watermark: {{delay: 10s, idle_timeout: 10m}}
  clicks:
    generator:
      count: {FILES * 100}
      seed: 7
      rate: 2
      start: "2026-01-01T00:00:00Z"
      partitions: 2
      out_of_order: {{fraction: 0.2, max: 8s}}
      columns: {{store: "concat('s', cast(n % 4 as string))", amount: "cast(n % 5 as bigint)"}}
    watermark: {{delay: 10s, idle_timeout: 10m}}
operators:
  paid: {{type: filter, input: orders, where: "amount > 0"}}
  once: {{type: dedup, input: paid, by: [order_id], within: 10m}}
  bought: {{type: map, input: once, select: {{store: store, amount: amount}}}}
  activity: {{type: union, inputs: [bought, clicks]}}
  per_minute:
    type: window
    input: activity
    key: [store]
    window: {{tumbling: 1m}}
    aggregate: {{events: count(), revenue: sum(amount)}}
  visits:
    type: window
    input: paid
    key: [user]
    window: {{session: 20s}}
    aggregate: {{orders: count(), first_order: first(order_id)}}
sinks:
  out: {{input: per_minute, sqlite: {{path: out.db, table: per_minute, key: [store, window_start]}}}}
  archive: {{input: per_minute, files: {{path: archive, format: jsonl}}}}
  visits_log: {{input: visits, sqlite: {{path: out.db, table: visits, mode: append}}}}
  late_minutes: {{input: per_minute.late, files: {{path: late_minutes, format: jsonl}}}}
  late_once: {{input: once.late, files: {{path: late_once, format: jsonl}}}}
  late_visits: {{input: visits.late, sqlite: {{path: late.db, table: late_visits, mode: append}}}}
  bad: {{input: orders.errors, files: {{path: bad, format: jsonl}}}}
"""
TABLES = {"out": "out.db:per_minute", "visits_log": "out.db:visits", "late_visits": "late.db:late_visits"}
FOLDERS = ("archive", "late_minutes", "late_once", "bad")
# The wall clock of a run is in them.
NOT_COMPARED = {"_ingestion_time"}
# By file: epochs with bad lines and without, as with late rows.
BROKEN = {
    0: ('{"order_id": "half', '{"order_id": "x", "amount": "much"}'),
    2: ("\N{BOMB}", '{"order_id": "timeless"}'),
}


def prepare(folder: Path) -> None:
    """Writes the job and all of its input."""
    (folder / "in").mkdir(parents=True)
    (folder / "job.yaml").write_text(JOB)
    random = Random(3)
    for number in range(FILES):
        write_file(folder, number, _lines(random, number))


def write_file(folder: Path, number: int, lines: list[str]) -> None:
    """Under its final name only when it is whole; files are taken in order of their times."""
    path = folder / "in" / f"{number:03}.jsonl"
    staged = folder / f".{path.name}"
    staged.write_text("".join(f"{line}\n" for line in lines))
    written_at = START.timestamp() + number
    os.utime(staged, (written_at, written_at))
    staged.rename(path)


def _lines(random: Random, number: int) -> list[str]:
    """One minute of orders: out of order within the delay, some sent twice, broken lines in some files.

    Some are late for their windows, some so late that dedup cannot judge them either.
    """
    begin = START + timedelta(minutes=number)
    orders = [_order(random, f"o{number}-{i}", begin + timedelta(seconds=1.5 * i), i) for i in range(ROWS_PER_FILE)]
    repeated = random.sample(orders, 3)
    late = [_order(random, f"l{number}-{i}", begin - timedelta(minutes=minutes), i) for i, minutes in enumerate(LATE)]
    lines = [*orders, *repeated, *(late if number >= FIRST_LATE else []), *BROKEN.get(number, ())]
    return sorted(lines, key=lambda _: random.random())


def _order(random: Random, order_id: str, at: datetime, index: int) -> str:
    moved = at - timedelta(seconds=random.choice((0, 0, 3, 8)))
    order = {
        "order_id": order_id,
        "store": f"s{random.randrange(4)}",
        "user": f"u{random.randrange(6)}",
        "amount": random.randrange(-1, 9),
        "shard": index % PARTITIONS,
        "ts": moved.isoformat(),
    }
    return json.dumps(order)


def contents(folder: Path) -> dict[str, list[str]]:
    """Everything the sinks hold, by sink, in an order of its own and without what differs from run to run."""
    tables = {sink: _table(folder, *place.split(":")) for sink, place in TABLES.items()}
    files = {sink: _files(folder / sink) for sink in FOLDERS}
    return {sink: sorted(_text(row, folder) for row in rows) for sink, rows in {**tables, **files}.items()}


def _table(folder: Path, database: str, table: str) -> list[dict[str, Any]]:
    connection = sqlite3.connect(folder / database)
    try:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
    finally:
        connection.close()


def _files(folder: Path) -> list[dict[str, Any]]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not _hidden(path.relative_to(folder))]
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def _hidden(path: Path) -> bool:
    return any(part[0] in "._" for part in path.parts)


def _text(row: dict[str, Any], folder: Path) -> str:
    shown = {name: value for name, value in row.items() if name not in NOT_COMPARED}
    return json.dumps(shown, sort_keys=True).replace(str(folder.resolve()), "")


def totals(held: dict[str, list[str]]) -> dict[str, int]:
    """How many events are behind the results of each window operator."""
    counted = {"out": "events", "visits_log": "orders"}
    return {sink: sum(json.loads(row)[column] for row in held[sink]) for sink, column in counted.items()}
