"""What Tidemark and PySpark by hand are compared on: orders of stores, counted and summed by store and minute.

The events, the job and the query by hand are here; where they are read from and written to is each comparison's own.
"""

from __future__ import annotations

import argparse
import json
import random
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.protocol.messages import Ended, RunSpec

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "id string, store string, user string, amount double, ts timestamp"
JOB = """
tidemark: 1
name: orders
{settings}
sources:
  events:
    {source}
    schema: {{id: string, store: string, user: string, amount: double, ts: timestamp}}
    event_time: ts
    watermark: {{delay: 5s}}
operators:
  per_minute:
    type: window
    input: events
    key: [store]
    window: {{tumbling: 1m}}
    aggregate: {{orders: count(), revenue: sum(amount)}}
sinks:
  out: {{input: per_minute, {sink}}}
"""


def order(id_: str, n: int, time: datetime, keys: int, chance: random.Random) -> str:
    """One event as JSON, of a store among `keys`."""
    return json.dumps(
        {
            "id": id_,
            "store": f"s{chance.randrange(keys)}",
            "user": f"u{n % 977}",
            "amount": n % 100 + 0.5,
            "ts": time.isoformat().replace("+00:00", "Z"),
        }
    )


def job_text(source: str, sink: str, settings: str = "") -> str:
    return JOB.format(source=source, sink=sink, settings=settings)


def run_job(spark: SparkSession, text: str, work: Path, lineage: str = "bench") -> Ended:
    """Drains the job in this process; its state is in `work`."""
    (work / "state").mkdir(parents=True)
    spec = RunSpec(
        plan=compile_job(text).plan,
        lineage=lineage,
        attempt=1,
        first_started_at=START,
        state=str(work / "state"),
        base=str(work),
        until_drained=True,
    )
    return JobDriver(spec, spark, lambda message: None).run()


def per_minute(events: DataFrame) -> DataFrame:
    """The job's window as one would write it with Structured Streaming alone."""
    return (
        events.withWatermark("ts", "5 seconds")
        .groupBy(F.window("ts", "1 minute"), "store")
        .agg(F.count(F.lit(1)).alias("orders"), F.sum("amount").alias("revenue"))
        .select("store", "window.start", "window.end", "orders", "revenue")
    )


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser
