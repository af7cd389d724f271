"""A job on a real standalone cluster of this machine, and an executor of it that is killed.

The cluster is started from the Spark that pip installed: one master, two workers, all on loopback. The job has Python
in a generated source and in a dedup, and reads from Kafka: executors must find Tidemark and the jars of the connector.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from bench.day_jobs import (
    CLICKS,
    ORDERS_SOURCE,
    TICKS,
    Feed,
    Oracle,
    clicks_of,
    differences,
    file_rows,
    iso,
    tick_differences,
)
from bench.day_report import Report
from bench.day_script import settle
from bench.day_server import Server, processes_with, wait_until
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Record, Topics
from tidemark.testing.ports import HOST, free_ports, listens

RECOVERY_SECONDS = 30.0
WORKERS = 2
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
QUERIES = ("per_minute", "per_second")
CLICK_BATCHES = 60
_END_SECONDS = 20
JOB = f"""\
tidemark: 1
name: clustered
parallelism: {WORKERS}
epoch: {{interval: 1s}}
sources:
{ORDERS_SOURCE}  ticks:
    generator: {{rate: {TICKS}, start: "2026-01-01T00:00:00Z", partitions: 2, columns: {{num: n}}}}
    schema: {{num: long}}
    watermark: {{delay: 0s}}
  clicks:
    kafka: {{topic: clicks, servers: $KAFKA}}
    format: json
    schema: {{store: string, amount: long, ts: timestamp}}
    event_time: ts
    watermark: {{delay: 0s, idle_timeout: 1h}}
operators:
  valid: {{type: filter, input: orders, where: "amount > 0"}}
  once: {{type: dedup, input: valid, by: [order_id], within: 10m}}
  per_minute:
    type: window
    input: once
    key: [store]
    window: {{tumbling: 1m}}
    aggregate: {{events: count(), revenue: sum(amount)}}
  per_second: {{type: window, input: ticks, window: {{tumbling: 1s}}, aggregate: {{c: count(), low: min(num)}}}}
  per_store: {{type: window, input: clicks, key: [store], window: {{tumbling: 1m}}, aggregate: {{c: count()}}}}
sinks:
  clicks_out: {{input: per_store, files: {{path: clicks, format: jsonl}}}}
  out: {{input: per_minute, files: {{path: clustered, format: jsonl}}}}
  ticks_out: {{input: per_second, sqlite: {{path: ticks.db, table: ticks, mode: append}}}}
"""


class Cluster:
    """A master and its workers; each is a process of its own, and an executor a child of its worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = ExitStack()
        (self._port,) = free_ports(1)
        self.address = f"spark://{HOST}:{self._port}"

    def start(self) -> None:
        at = ("--host", HOST)
        self._start("master", "master.Master", *at, "--port", str(self._port), "--webui-port", "0")
        wait_until(lambda: listens(self._port), "the master listens")
        for number in range(WORKERS):
            folder = self._folder / f"worker-{number}"
            limits = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder))
            self._start(f"worker-{number}", "worker.Worker", *at, *limits, self.address)

    def close(self) -> None:
        self._processes.close()

    def _start(self, name: str, role: str, *arguments: str) -> None:
        spark = importlib.util.find_spec("pyspark")
        assert spark is not None
        assert spark.origin is not None
        home = Path(spark.origin).parent
        with open(self._folder / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{role}", *arguments],
                env={
                    **os.environ,
                    "SPARK_HOME": str(home),
                    "SPARK_LOCAL_IP": HOST,
                    "PYSPARK_PYTHON": sys.executable,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.callback(_end, process)


class LostExecutor:
    def __init__(self, folder: Path, report: Report) -> None:
        self._folder = folder
        self._report = report
        self._cluster = Cluster(folder)
        self._broker = KafkaBroker()
        self._server = Server(folder, {"TIDEMARK_MASTER": self._cluster.address, "KAFKA": self._broker.servers})
        self._feed = Feed(folder)
        self._job = ""

    def run(self) -> None:
        with self._broker, ExitStack() as stack:
            self._publish_clicks()
            stack.callback(self._cluster.close)
            self._cluster.start()
            self._server.start()
            stack.callback(self._server.close)
            self._feed.start()
            stack.callback(self._feed.stop)
            self._job = self._server.submit(JOB)
            self._server.wait_beyond(self._job, {**dict.fromkeys(QUERIES, 3), "per_store": 0})
            self._report.check("the job runs on executors of the cluster", len(_executors()) == WORKERS)
            self._kill_an_executor()
            self._compare()

    def _publish_clicks(self) -> None:
        """All there will be, and one so late that their windows close."""
        rows = [row for batch in range(CLICK_BATCHES) for row in clicks_of(batch)]
        last = {"store": "end", "ts": rows[-1]["ts"] + timedelta(hours=1)}
        topics = Topics(self._broker.servers)
        topics.create("clicks")
        topics.produce("clicks", [Record(json.dumps(row, default=iso).encode()) for row in [*rows, last]])

    def _kill_an_executor(self) -> None:
        os.kill(_executors()[0], signal.SIGKILL)
        killed = time.time()
        took = max(self._server.next_commit(self._job, query, killed) for query in QUERIES) - killed
        self._report.check(
            "next committed epoch of both queries after the kill of an executor",
            took <= RECOVERY_SECONDS and self._server.job(self._job)["attempt"] == 1,
            f"{took:.1f} s",
        )
        told = wait_until(lambda: self._warnings(), "the loss is told")
        self._report.check("the events of the job tell of it", len(told) == 1, told[0])
        wait_until(lambda: len(_executors()) == WORKERS, "another executor is started")

    def _warnings(self) -> list[str]:
        return [event["cause"] for event in self._server.events(self._job) if event["kind"] == "warning"]

    def _compare(self) -> None:
        self._server.wait_beyond(self._job, {**self._server.epochs(self._job), "per_store": -1})
        self._feed.close()
        expected = Oracle(self._feed.batches).per_minute(clicks=False)
        settle(lambda: len(file_rows(self._folder / "clustered")) >= len(expected))
        wrong = differences(file_rows(self._folder / "clustered"), expected, "biggest")
        self._report.same("the results equal the oracle", wrong, f"{len(expected)} rows")
        held = sum(row["c"] for row in file_rows(self._folder / "clicks"))
        self._report.check("every click was counted once", held == CLICK_BATCHES * CLICKS, f"{held} clicks")
        self._report.same("the generated windows are whole", *tick_differences(self._folder))


def _executors() -> list[int]:
    return processes_with(EXECUTOR)


def _end(process: subprocess.Popen[bytes]) -> None:
    """A worker that is told to end takes its executors with it."""
    process.terminate()
    process.wait(_END_SECONDS)
