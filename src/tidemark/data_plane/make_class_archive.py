"""Makes the archive of Spark's classes: runs a small job, and lets Java write down the classes that it used.

`python -m tidemark.data_plane.make_class_archive`, once for an environment; `make setup` does it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from tidemark import class_archive
from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.session import create_session
from tidemark.data_plane.spark_internals import end_with_java
from tidemark.protocol.messages import RunSpec

_START = datetime(2026, 1, 1, tzinfo=UTC)
_EXIT_SECONDS = 120
# A little of everything that most jobs use: both kinds of sources, state of both kinds, side ports, several sinks.
_JOB = """
tidemark: 1
name: class-archive
sources:
  orders:
    files: {path: in, format: jsonl, max_files_per_epoch: 1}
    schema: {id: string, store: string, amount: double, ts: timestamp}
    event_time: ts
    watermark: {delay: 5s}
  ticks:
    generator: {rate: 1000, count: 200, columns: {key: "concat('k', n % 4)"}}
    schema: {key: string}
operators:
  large: {type: filter, input: orders, where: amount > 1}
  once: {type: dedup, input: large, by: [id], within: 1h}
  per_minute: {type: window, input: once, key: [store], window: {tumbling: 1m}, aggregate: {sum: sum(amount)}}
  tick_sessions: {type: window, input: ticks, key: [key], window: {session: 1s}, aggregate: {ticks: count()}}
sinks:
  files: {input: per_minute, files: {path: out, format: jsonl}}
  table: {input: tick_sessions, sqlite: {path: out.db, table: ticks, key: [key, window_start]}}
  late: {input: per_minute.late, files: {path: late, format: jsonl}}
  bad: {input: orders.errors, files: {path: bad, format: jsonl}}
"""


def main() -> int:
    target = class_archive.path()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        made = Path(name) / target.name
        spark = create_session("class-archive", driver_memory="1g", parallelism=2, archive_classes_to=made)
        _run_job(spark, Path(name))
        end_with_java(spark, _EXIT_SECONDS)
        if not made.is_file():
            print("Java wrote no archive of Spark's classes: drivers start without one, more slowly", file=sys.stderr)
            return 1
        made.replace(target)
    return 0


def _run_job(spark: SparkSession, folder: Path) -> None:
    (folder / "in").mkdir()
    for file in range(2):
        _write_orders(folder / "in" / f"{file}.jsonl", first=file * 50)
    spec = RunSpec(
        plan=compile_job(_JOB).plan,
        lineage="class-archive",
        attempt=1,
        first_started_at=_START,
        state=str(folder / "state"),
        base=str(folder),
        until_drained=True,
    )
    (folder / "state").mkdir()
    JobDriver(spec, spark, lambda message: None).run()


def _write_orders(path: Path, first: int) -> None:
    """With one late order and one that cannot be read in each."""
    times = [*(_START + timedelta(seconds=10 * number) for number in range(first, first + 50)), _START]
    orders = [
        {"id": f"{path.stem}-{number}", "store": f"s{number % 5}", "amount": number, "ts": time.isoformat()}
        for number, time in enumerate(times)
    ]
    path.write_text("\n".join([*map(json.dumps, orders), "not an order"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
