"""Where the checks of a sink run: a target, the rows handed to it, and crashes in its write.

The checks themselves are in `conformance.py`, the difficult values in `sink_values.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.connector import EpochRows, Sink, SinkContext
from tidemark.schema import parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAILPOINTS = ("mid_sink", "before_sink_commit", "after_sink_commit")
COLUMNS = (Column(name="id", type="string"), Column(name="n", type="long"))
MANY_ROWS = 300_000
_BATCH_ROWS = 10_000


class SimulatedCrash(Exception):
    """Leaves the sink where a killed process would."""


def crash_at(name: str) -> Callable[[str], None]:
    """A failpoint function that crashes at `name`."""

    def failpoint(reached: str) -> None:
        if reached == name:
            raise SimulatedCrash(name)

    return failpoint


@dataclass(frozen=True)
class FrameRows:
    """The rows of a static frame as an epoch's rows."""

    frame: DataFrame

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.frame.toArrow().to_batches()


@dataclass
class ManyRows:
    """Rows made on the way; notes the most Arrow memory that was alive while they were handed out."""

    frame: DataFrame
    most_memory: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        before = pa.total_allocated_bytes()
        for start in range(0, MANY_ROWS, _BATCH_ROWS):
            numbers = range(start, start + _BATCH_ROWS)
            yield pa.RecordBatch.from_pydict({"id": [str(n) for n in numbers], "n": list(numbers)})
            self.most_memory = max(self.most_memory, pa.total_allocated_bytes() - before)


@dataclass
class InterruptedRows:
    """Rows during whose computation something else happens, once."""

    rows: EpochRows
    meanwhile: Callable[[], object]
    happened: bool = field(default=False, init=False)

    @property
    def frame(self) -> DataFrame:
        self._happen()
        return self.rows.frame

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._happen()
        yield from self.rows.batches()

    def _happen(self) -> None:
        if not self.happened:
            self.happened = True
            self.meanwhile()


@dataclass(frozen=True)
class Target:
    """A place to write to that nobody has written to yet.

    `read` gives every row a reader sees, in any order, as plain values: timestamps and dates as ISO text, binary as
    base64 text, decimals as Decimal, nested values as lists and dicts. `holds` says whether the target can keep a
    text at all; what it cannot keep must be refused.
    """

    factory: Callable[[SinkContext], Sink]
    options: dict[str, Any]
    base: Path
    spark: SparkSession
    read: Callable[[tuple[Column, ...]], list[dict[str, Any]]]
    holds: Callable[[str], bool] = lambda _: True

    def sink(
        self,
        attempt: int = 1,
        *,
        name: str = "out",
        columns: tuple[Column, ...] = COLUMNS,
        failpoint: Callable[[str], None] = lambda _: None,
        keeps_refused: bool = False,
    ) -> Sink:
        return self.factory(
            SinkContext(
                job="job",
                lineage="lineage",
                sink=name,
                attempt=attempt,
                columns=columns,
                options=self.options,
                base=self.base,
                failpoint=failpoint,
                show=lambda _: None,
                keeps_refused=keeps_refused,
            )
        )

    def rows(self, values: Sequence[tuple[Any, ...]], columns: tuple[Column, ...] = COLUMNS) -> FrameRows:
        schema = ", ".join(f"`{column.name}` {parse_type(column.type).ddl}" for column in columns)
        return FrameRows(self.spark.createDataFrame(list(values), schema))

    def seen(self, columns: tuple[Column, ...] = COLUMNS) -> list[tuple[Any, ...]]:
        rows = [tuple(row[column.name] for column in columns) for row in self.read(columns)]
        return sorted(rows, key=lambda row: str(row[0]))
