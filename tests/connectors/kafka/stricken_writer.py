"""A process that writes two epochs and is struck in the second: `stricken_writer.py SERVERS TOPIC POINT SIGNAL`.

It strikes itself when the broker holds rows of the open transaction, so that the fault is what it claims to be. What
became of it afterwards is its exit code: 0 written, 7 fenced.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from connectors.arrow_rows import ArrowRows, columns_of, context_for
from support.waiting import wait_until

from tidemark.connectors.connector import EpochRows
from tidemark.connectors.kafka.sink import KafkaSink
from tidemark.errors import Fenced
from tidemark.testing.kafka_topics import Topics

COLUMNS = columns_of(k="string", n="long")
ROWS = 12_000
FENCED = 7


def options(servers: str, topic: str) -> dict[str, object]:
    return {"servers": servers, "topic": topic, "namespace": topic, "format": "json", "key": ("k",)}


def rows_of(epoch: int) -> EpochRows:
    numbers = range(epoch * ROWS, (epoch + 1) * ROWS)
    texts = pa.array([f"key {n}" for n in numbers])
    return ArrowRows({"k": texts, "n": pa.array(numbers, pa.int64())}, batch_rows=10_000)


def main(servers: str, topic: str, point: str, number: int) -> int:
    topics = Topics(servers)

    def strike(reached: str) -> None:
        if reached == point:
            if point == "mid_sink":
                wait_until(lambda: sum(topics.end_offsets(topic, committed=False).values()) > ROWS + 1)
            os.kill(os.getpid(), number)

    steps: tuple[Callable[[str], None], ...] = (lambda _: None, strike)
    for epoch, failpoint in enumerate(steps):
        sink = KafkaSink(context_for(Path(), options(servers, topic), COLUMNS, failpoint=failpoint))
        sink.open()
        try:
            sink.write(epoch, rows_of(epoch))
        except Fenced:
            return FENCED
        sink.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], signal.Signals[sys.argv[4]]))
