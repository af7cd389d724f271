"""How fast the PostgreSQL sink upserts, against bare COPY and INSERT … ON CONFLICT of the same rows in the same run.

`python bench/postgres_upsert.py [ROWS] [ROUNDS]`. The bare way is given its text ready-made and keeps no ledger; both
take turns on one server that syncs to disk, each into its own table, half of the keys of a round being new.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.connector import SinkContext
from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.connectors.postgres.types import copy_text
from tidemark.schema import parse_type
from tidemark.testing.postgres_server import running_postgres

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = tuple(
    Column(name=name, type=type_)
    for name, type_ in {
        "store": "string",
        "window_start": "timestamp",
        "window_end": "timestamp",
        "orders": "long",
        "revenue": "double",
    }.items()
)
KEY = ["store", "window_start"]
BATCH_ROWS = 10_000
CREATE = """
CREATE TABLE bare (store text, window_start timestamptz, window_end timestamptz, orders bigint, revenue float8,
    UNIQUE NULLS NOT DISTINCT (store, window_start))"""
UPSERT = """
INSERT INTO bare SELECT * FROM stage ON CONFLICT (store, window_start)
DO UPDATE SET window_end = excluded.window_end, orders = excluded.orders, revenue = excluded.revenue"""


@dataclass(frozen=True)
class Rows:
    """The rows of one round as Spark would hand them over."""

    batch_list: list[pa.RecordBatch]

    @property
    def frame(self) -> DataFrame:
        raise AssertionError("the sink takes batches")

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.batch_list


def rows_of(round_: int, count: int) -> Rows:
    first = round_ * count // 2
    numbers = range(first, first + count)
    minutes = pa.array([n // 500 * 60_000_000 for n in numbers], pa.timestamp("us", tz="UTC"))
    columns = {
        "store": pa.array([f"store-{n % 500:04}" for n in numbers]),
        "window_start": minutes,
        "window_end": pa.array([n // 500 * 60_000_000 + 60_000_000 for n in numbers], pa.timestamp("us", tz="UTC")),
        "orders": pa.array(numbers, pa.int64()),
        "revenue": pa.array([n * 1.25 + round_ for n in numbers], pa.float64()),
    }
    return Rows(pa.table(columns).to_batches(max_chunksize=BATCH_ROWS))


def write_bare(url: str, text: list[bytes]) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE stage ON COMMIT DROP AS SELECT * FROM bare LIMIT 0")
        with cursor.copy("COPY stage FROM STDIN") as copy:
            for part in text:
                copy.write(part)
        cursor.execute(UPSERT)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(url: str, count: int, rounds: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(CREATE)
    options = {"url": url, "table": "results", "key": KEY, "mode": "upsert"}
    sink = PostgresSink(
        SinkContext("bench", "bench", "out", 1, COLUMNS, options, Path(), lambda _: None, lambda _: None)
    )
    sink.open()
    types = [(column.name, parse_type(column.type)) for column in COLUMNS]
    ratios: list[float] = []
    rates: list[float] = []
    for round_ in range(rounds + 1):
        rows = rows_of(round_, count)
        text = [bytes(copy_text(batch, types)) for batch in rows.batches()]
        bare = seconds(partial(write_bare, url, text))
        ours = seconds(partial(sink.write, round_, rows))
        if round_:  # the first fills caches and tables
            ratios.append(bare / ours)
            rates.append(count / ours)
            print(f"  round {round_}: sink {count / ours:9,.0f} rows/s, bare {count / bare:9,.0f} rows/s")
    sink.close()
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"sink {statistics.median(rates):,.0f} rows/s; {statistics.median(ratios):.2f} of bare ({spread})")


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with running_postgres(settings={"shared_buffers": "256MB", "max_wal_size": "4GB"}) as server:
        measure(server.url, size, times)
