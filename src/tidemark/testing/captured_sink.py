"""A sink that keeps what a job writes as one Arrow file per epoch, so that a test sees typed values.

It keeps the promise of a real one: an epoch is there whole or not at all, and once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.compiler.plan.plan import SinkPlan
from tidemark.connectors.connector import EpochRows, SinkContext

CONNECTOR = "captured"
_UPSERTING = ("sqlite", "postgres")
Row = dict[str, Any]


def captured(plan: SinkPlan, folder: Path) -> SinkPlan:
    """The same sink with its rows kept in `folder`; a table that is updated by key still is."""
    upserts = plan.connector in _UPSERTING and plan.options.get("mode") != "append"
    options = {"path": str(folder), "key": list(plan.options.get("key") or ()) if upserts else []}
    return plan.model_copy(update={"connector": CONNECTOR, "options": options, "keeps_refused": False})


class CapturedSink:
    exactly_once = True

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._folder = Path(context.options["path"])

    def open(self) -> int | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        return max((int(path.stem) for path in _epochs(self._folder)), default=None)

    def held(self, epoch: int) -> int | None:
        path = self._path(epoch)
        if not path.exists():
            return None
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
            return sum(int(reader.get_batch(index).num_rows) for index in range(reader.num_record_batches))

    def write(self, epoch: int, rows: EpochRows) -> int:
        hidden = self._folder / f".{epoch}.arrow"
        count = _write(hidden, rows)
        self._context.failpoint("before_sink_commit")
        os.rename(hidden, self._path(epoch))
        self._context.failpoint("after_sink_commit")
        return count

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _path(self, epoch: int) -> Path:
        return self._folder / f"{epoch}.arrow"


def _write(path: Path, rows: EpochRows) -> int:
    count = 0
    batches = rows.batches()
    first = next(batches, None)
    schema = pa.schema([]) if first is None else first.schema
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        while first is not None:
            writer.write_batch(first)
            count += first.num_rows
            first = next(batches, None)
    return count


def captured_rows(plan: SinkPlan) -> list[Row]:
    """What a reader of the sink would see, in the order it was written: of a table with a key, its last rows."""
    rows = [row for path in _epochs(Path(plan.options["path"])) for row in _read(path, plan)]
    key = plan.options["key"]
    if not key:
        return rows
    return list({tuple(_hashable(row[name]) for name in key): row for row in rows}.values())


def _epochs(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.arrow"), key=lambda path: int(path.stem))


def _read(path: Path, plan: SinkPlan) -> list[Row]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
        table = reader.read_all()
    names = [column.name for column in plan.columns]
    return [{name: row[name] for name in names} for row in table.to_pylist(maps_as_pydicts="strict")]


def _hashable(value: object) -> object:
    """A NaN is one key, whichever object it is."""
    return "NaN" if value != value else value
