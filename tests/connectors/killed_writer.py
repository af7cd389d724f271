"""A process that writes two epochs and ends in the second: `killed_writer.py SINK BASE FAILPOINT OPTIONS [SIGNAL]`.

SIGKILL ends it there; SIGSTOP freezes it, and when it is continued it tells what came of its write.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from connectors.arrow_rows import ArrowRows, columns_of, context_for

from tidemark.connectors.connector import EpochRows, Sink, SinkContext
from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.connectors.sqlite.sink import SqliteSink
from tidemark.errors import SinkUnavailable, TidemarkError

COLUMNS = columns_of(k="string", n="long")
ROWS = 25_000
OPTIONS: dict[str, dict[str, Any]] = {
    "sqlite": {"path": "db", "table": "t"},
    "files": {"path": "out", "format": "jsonl"},
    "postgres": {"table": "t", "key": ["k"]},
}


def sink_of(name: str, context: SinkContext) -> Sink:
    if name == "sqlite":
        return SqliteSink(context)
    if name == "postgres":
        return PostgresSink(context)
    from tidemark.connectors.files.sink import FilesSink

    return FilesSink(context)


def rows_of(name: str, epoch: int) -> EpochRows:
    numbers = range(epoch * ROWS, (epoch + 1) * ROWS)
    if name != "files":
        texts = pa.array([f"key {n}" for n in numbers])
        return ArrowRows({"k": texts, "n": pa.array(numbers, pa.int64())}, batch_rows=10_000)
    from tidemark.data_plane.session import create_session
    from tidemark.testing.sink_target import FrameRows

    spark = create_session("killed", driver_memory="1g", parallelism=2)
    frame = spark.range(numbers.start, numbers.stop, 1, 3)
    return FrameRows(frame.selectExpr("concat('key ', id) AS k", "id AS n"))


def striking(name: str, number: signal.Signals) -> Callable[[str], None]:
    def failpoint(reached: str) -> None:
        if reached == name:
            os.kill(os.getpid(), number)

    return failpoint


def tried(sink: Sink, epoch: int, name: str) -> bool:
    """Whether there is no more to be done for this epoch; an unavailable sink is tried again."""
    try:
        sink.write(epoch, rows_of(name, epoch))
    except TidemarkError as error:
        print(error.code, flush=True)
        return not isinstance(error, SinkUnavailable)
    print("written", flush=True)
    return True


def main(name: str, base: Path, failpoint: str, options: dict[str, Any], number: signal.Signals) -> None:
    for epoch, stop in enumerate((lambda _: None, striking(failpoint, number))):
        sink = sink_of(name, context_for(base, options, COLUMNS, failpoint=stop))
        sink.open()
        while not tried(sink, epoch, name):
            pass
        sink.close()


if __name__ == "__main__":
    chosen = signal.Signals[sys.argv[5]] if len(sys.argv) > 5 else signal.SIGKILL
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), chosen)
