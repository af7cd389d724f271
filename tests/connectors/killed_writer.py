"""A process that writes two epochs and is killed in the second: `killed_writer.py SINK BASE FAILPOINT`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from connectors.arrow_rows import ArrowRows, columns_of, context_for

from tidemark.connectors.connector import EpochRows, Sink, SinkContext
from tidemark.connectors.sqlite.sink import SqliteSink

COLUMNS = columns_of(k="string", n="long")
ROWS = 25_000
OPTIONS = {"sqlite": {"path": "db", "table": "t"}, "files": {"path": "out", "format": "jsonl"}}


def sink_of(name: str, context: SinkContext) -> Sink:
    if name == "sqlite":
        return SqliteSink(context)
    from tidemark.connectors.files.sink import FilesSink

    return FilesSink(context)


def rows_of(name: str, epoch: int) -> EpochRows:
    numbers = range(epoch * ROWS, (epoch + 1) * ROWS)
    if name == "sqlite":
        texts = pa.array([f"key {n}" for n in numbers])
        return ArrowRows({"k": texts, "n": pa.array(numbers, pa.int64())}, batch_rows=10_000)
    from tidemark.data_plane.session import create_session
    from tidemark.testing.sink_target import FrameRows

    spark = create_session("killed", driver_memory="1g", parallelism=2)
    frame = spark.range(numbers.start, numbers.stop, 1, 3)
    return FrameRows(frame.selectExpr("concat('key ', id) AS k", "id AS n"))


def killing(name: str) -> Callable[[str], None]:
    def failpoint(reached: str) -> None:
        if reached == name:
            os.kill(os.getpid(), signal.SIGKILL)

    return failpoint


def main(name: str, base: Path, failpoint: str) -> None:
    for epoch, stop in enumerate((lambda _: None, killing(failpoint))):
        sink = sink_of(name, context_for(base, OPTIONS[name], COLUMNS, failpoint=stop))
        sink.open()
        sink.write(epoch, rows_of(name, epoch))
        sink.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
