"""The console sink: the first rows of every epoch as JSON lines, for people. It remembers and guarantees nothing."""

from __future__ import annotations

from tidemark.connectors.connector import EpochRows, SinkContext
from tidemark.connectors.rendering import json_values
from tidemark.schema import parse_type, struct_of

_SHOWN_ROWS = 20


class ConsoleSink:
    """Shows at most 20 rows an epoch and how many more there were; a replayed epoch is shown again."""

    exactly_once = False

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._type = struct_of(*((column.name, parse_type(column.type)) for column in context.columns))

    def open(self) -> int | None:
        return None

    def held(self, epoch: int) -> int | None:
        return None

    def write(self, epoch: int, rows: EpochRows) -> int:
        count = 0
        for batch in rows.batches():
            head = batch.slice(0, max(0, _SHOWN_ROWS - count))
            for line in json_values(head.to_struct_array(), self._type):
                self._context.show(line or "null")
            count += batch.num_rows
        self._context.failpoint("mid_sink")
        self._context.failpoint("before_sink_commit")
        if count > _SHOWN_ROWS:
            self._context.show(f"… {count - _SHOWN_ROWS} more rows in epoch {epoch}")
        self._context.failpoint("after_sink_commit")
        return count

    def close(self) -> None:
        """Nothing is held open."""
