"""Rows that a database refuses by their content: finding them among good ones, and keeping them until they are sent on.

What a database says of a row is looked at beside each connector; here is what all of them share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidemark.record_errors import RowError

_LONGEST_MESSAGE = 500


@dataclass(frozen=True)
class Refusal:
    """Why a row is not wanted."""

    code: RowError
    message: str


def refused_rows(
    chunk: pa.RecordBatch, apply: Callable[[pa.RecordBatch], Refusal | None]
) -> Iterator[tuple[pa.RecordBatch, Refusal]]:
    """Applies a chunk, in order, without the rows that are refused; those come out one by one.

    `apply` takes all rows it is given, or none and says why. A chunk without a bad row is applied in one go, one
    with some is halved until they stand alone.
    """
    waiting = [chunk]
    while waiting:
        part = waiting.pop()
        refusal = apply(part) if part.num_rows else None
        if refusal is None:
            continue
        if part.num_rows == 1:
            yield part, refusal
        else:
            half = part.num_rows // 2
            waiting += [part.slice(half), part.slice(0, half)]


def with_reasons(refused: list[tuple[pa.RecordBatch, Refusal]]) -> pa.RecordBatch:
    """Refused rows as they go to `<sink>.errors`: with `_error_code` and `_error`."""
    (rows,) = pa.Table.from_batches([row for row, _ in refused]).combine_chunks().to_batches()
    codes = pa.array([str(refusal.code) for _, refusal in refused], pa.string())
    messages = pa.array([refusal.message[:_LONGEST_MESSAGE] for _, refusal in refused], pa.string())
    return pa.RecordBatch.from_arrays(
        [*rows.columns, codes, messages], names=[*rows.schema.names, "_error_code", "_error"]
    )


def to_bytes(rows: pa.RecordBatch) -> bytes:
    """Rows with their types, for a column of bytes."""
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(target.getvalue())


def from_bytes(kept: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(kept) as stream:
        return stream.read_next_batch()
