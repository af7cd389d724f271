"""A shop whose orders, totals and dead letters go to PostgreSQL, run by a `JobDriver` in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Ended, RunSpec, Warned

JOB = """\
tidemark: 1
name: shop
parallelism: 2
sources:
  orders:
    files: {path: in, format: jsonl, max_files_per_epoch: 1}
    schema: {id: string, store: string, amount: long, t: timestamp(s)}
    event_id: id
    event_time: t
    watermark: {delay: 0s, idle_timeout: 10m}
operators:
  cheap: {type: filter, input: out.errors, where: "amount < 1000"}
  per_minute:
    type: window
    input: orders
    key: [store]
    window: {tumbling: 1m}
    aggregate: {orders: count(), total: sum(amount)}
sinks:
  refused: {input: cheap, postgres: {url: $PG, table: refused}}
  refused_files: {input: out.errors, files: {path: refused, format: jsonl}}
  out: {input: orders, postgres: {url: $PG, table: sales.orders, key: [id]}}
  totals: {input: per_minute, postgres: {url: $PG, table: totals, key: [store, window_start]}}
  late: {input: per_minute.late, postgres: {url: $PG, table: late, mode: append}}
  bad: {input: orders.errors, postgres: {url: $PG, table: bad}}
  bad_files: {input: orders.errors, files: {path: bad, format: jsonl}}
"""
POISON = b'{"id": "half\x00\xff'
# Amounts of 100 and more are refused by the table, and one of them is not cheap; the last order is late.
ORDERS = (
    [("a", "s1", 5, 0), ("b", "s1", 100, 10), ("c", "s2", 7, 20)],
    [("d", "s1", 2000, 70), ("e", "s2", 9, 80), ("a", "s1", 6, 90)],
    [("f", "s2", 1, 130)],
    [("g", "s1", 3, 30)],
)


def write_orders(folder: Path) -> None:
    folder.mkdir()
    for number, orders in enumerate(ORDERS):
        lines = [json.dumps(dict(zip(("id", "store", "amount", "t"), order, strict=True))) for order in orders]
        path = folder / f"{number}.jsonl"
        path.write_bytes(b"\n".join([*(line.encode() for line in lines), *([POISON] if number == 1 else []), b""]))
        os.utime(path, (1_700_000_000 + number,) * 2)


@dataclass
class Shop:
    """`definition` is run in `folder` from its state there, with one attempt after the other."""

    spark: SparkSession
    folder: Path
    definition: str = JOB
    attempt: int = 0
    said: list[Message] = field(default_factory=list)

    def drain(self, watch: Callable[[Message], None] = lambda _: None) -> Ended:
        self.attempt += 1
        spec = RunSpec(
            plan=compile_job(self.definition).plan,
            lineage="lineage",
            attempt=self.attempt,
            first_started_at=datetime(2026, 1, 1, tzinfo=UTC),
            state=str(self.folder / "state"),
            base=str(self.folder),
            until_drained=True,
        )

        def hear(message: Message) -> None:
            self.said.append(message)
            watch(message)

        return JobDriver(spec, self.spark, hear).run()

    def warnings(self) -> list[Warned]:
        return [message for message in self.said if isinstance(message, Warned)]

    def files(self, sink: str) -> list[dict[str, Any]]:
        paths = sorted((self.folder / sink).glob("part-*"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]
