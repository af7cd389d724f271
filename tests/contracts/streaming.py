"""Small streams for the contract tests: numbered files of events, and a query whose epochs are noted as they run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tidemark.data_plane.spark_internals import EpochFacts, Execution

NEVER = "100000 days"
Watch = Callable[[DataFrame, int, Execution], None]


@dataclass
class Feed:
    """A folder that an epoch takes one file of; event times are seconds."""

    spark: SparkSession
    folder: Path
    files: int = 0

    def add(self, *events: tuple[str, int]) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.files:03}.json"
        staged = self.folder / f".{path.name}"
        staged.write_text("".join(json.dumps({"k": key, "t": time}) + "\n" for key, time in events))
        os.utime(staged, (1_700_000_000 + self.files,) * 2)
        staged.rename(path)
        self.files += 1
        return path

    def raw(self, name: str = "events") -> DataFrame:
        self.folder.mkdir(parents=True, exist_ok=True)
        reader = self.spark.readStream.name(name).schema("k string, t long").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))

    def stream(self, name: str = "events") -> DataFrame:
        """With the event time that Spark watches and never moves by itself."""
        return self.raw(name).withColumn("time", F.timestamp_seconds("t")).withWatermark("time", NEVER)


@dataclass
class Epochs:
    """Runs a query; `hand_over` says in seconds which watermark an epoch gives to the next one."""

    frame: DataFrame
    checkpoint: Path
    mode: str = "append"
    hand_over: dict[int, int] = field(default_factory=dict)
    watch: Watch | None = None
    rows: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    facts: dict[int, EpochFacts] = field(default_factory=dict)
    observed: dict[int, dict[str, list[Any]]] = field(default_factory=dict)

    def __enter__(self) -> Epochs:
        attached = threading.Event()

        def on_epoch(batch: DataFrame, epoch: int) -> None:
            attached.wait(60)
            self._epoch(batch, epoch)

        writer = self.frame.writeStream.outputMode(self.mode).foreachBatch(on_epoch)
        self.query: StreamingQuery = writer.option("checkpointLocation", str(self.checkpoint)).start()
        self.execution = Execution(self.query)
        attached.set()
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    def run(self) -> Epochs:
        """Until nothing is left to do."""
        self.query.processAllAvailable()
        return self

    def all_rows(self) -> list[tuple[Any, ...]]:
        return sorted(row for rows in self.rows.values() for row in rows)

    def logged_watermark(self, epoch: int) -> int:
        metadata = (self.checkpoint / "offsets" / str(epoch)).read_text().splitlines()[1]
        watermark: int = json.loads(metadata)["batchWatermarkMs"]
        return watermark // 1000

    def _epoch(self, batch: DataFrame, epoch: int) -> None:
        self.rows[epoch] = [tuple(row) for row in batch.collect()]
        self.facts[epoch] = self.execution.facts()
        self.observed[epoch] = self.execution.observed()
        if self.watch is not None:
            self.watch(batch, epoch, self.execution)
        if epoch in self.hand_over:
            self.execution.set_watermark(self.hand_over[epoch] * 1000)
