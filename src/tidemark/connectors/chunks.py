"""The rows of an epoch in pieces of bounded size, for sinks that send them through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.connectors.connector import EpochRows

_CHUNK_ROWS = 10_000


def computed_chunks(rows: EpochRows) -> Iterator[pa.RecordBatch]:
    """Waits for the first chunk, so that nothing is locked, and no transaction open, while Spark computes the epoch."""
    chunks = _chunks(rows)
    first = next(chunks, None)
    return chunks if first is None else chain([first], chunks)


def _chunks(rows: EpochRows) -> Iterator[pa.RecordBatch]:
    for batch in rows.batches():
        for start in range(0, batch.num_rows, _CHUNK_ROWS):
            yield batch.slice(start, _CHUNK_ROWS)
