"""What a connector must provide, and what the engine promises it.

A source gives raw records; decoding, error rows and event time are the engine's. A sink is called from one thread:
`open` once per start, then for every epoch `held` and, unless it already holds that epoch, `write`; at the end
`close`. After a crash an epoch is offered again with the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from tidemark.compiler.plan.plan import Column, EpochPolicy, SourcePlan


@dataclass(frozen=True)
class FlatJson:
    """Spark's own JSON reader over the same records: twice as fast as decoding lines, but it has no line to show.

    `read` takes the columns and the reader's options. It may be used for an epoch only if every line of its files is at
    most one JSON object without another inside: `lines` then says how many there are, else None. The reader makes at
    most one row of each.
    """

    read: Callable[[str, Mapping[str, str]], DataFrame]
    lines: Callable[[EpochScan], int | None]


@dataclass(frozen=True)
class Records:
    """Raw records and how to read them: expressions over `frame`.

    `value` is the record's text; None when the connector yields the payload columns itself. `time` and `key` are
    what the record brings along when the source names no column for them. `partition_column` is a payload column
    that says which of `partitions` an event belongs to.
    """

    frame: DataFrame
    id: SparkColumn
    value: SparkColumn | None = None
    time: SparkColumn | None = None
    key: SparkColumn | None = None
    partition: SparkColumn | None = None
    offset: SparkColumn | None = None
    headers: SparkColumn | None = None
    partition_column: str | None = None
    partitions: int = 1
    flat_json: FlatJson | None = None


class EpochScan(Protocol):
    """What Spark read for one source in one epoch."""

    def files(self) -> list[str]: ...

    def frame(self) -> DataFrame: ...


@dataclass(frozen=True)
class SourceContext:
    """`first_started_ms` is when the job's lineage began: the same at every restart.

    Spark knows the offsets of a `named` source by its id, else by its place in the query: it takes no name twice,
    and a query may read a source by several ways.
    """

    plan: SourcePlan
    options: dict[str, Any]  # validated, secrets resolved
    base: Path  # relative paths in options are relative to this folder
    epoch: EpochPolicy
    first_started_ms: int
    job: str = ""
    named: bool = True

    def reader(self, spark: SparkSession) -> DataStreamReader:
        return spark.readStream.name(self.plan.id) if self.named else spark.readStream


@dataclass(frozen=True)
class PartitionOffsets:
    """`offset` is the next to be read, `end` the one after the newest there is; None when that is not known."""

    offset: int
    end: int | None = None
    lag: int | None = None


@runtime_checkable
class CountsOffsets(Protocol):
    """What a source also has whose partitions count their events."""

    def offsets(self, end: str | None, latest: str | None) -> dict[int, PartitionOffsets]:
        """By partition, from the offsets Spark reports after an epoch."""
        ...


class Source(Protocol):
    """Where events come from. Partitions are numbered from 0 and each has its own watermark."""

    @property
    def partitions(self) -> int: ...

    def stream(self, spark: SparkSession) -> Records:
        """The endless stream. Raises SourceUnreadable, naming what is missing, when it cannot start."""
        ...

    def reread(self, spark: SparkSession, scan: EpochScan) -> Records:
        """Exactly the records of one epoch again, as a static frame."""
        ...

    def unread(self, end: str | None, latest: str | None) -> int | None:
        """How many events wait, from the offsets Spark reports after an epoch; None where offsets do not tell."""
        ...


@runtime_checkable
class GrowingSource(Protocol):
    """What a source also has whose partitions can come into being while the job runs.

    Each epoch takes something from every partition that has something unread: one that an epoch took nothing from
    was quiet until that epoch was planned.
    """

    def present(self) -> Collection[int]:
        """Those of the numbers below `partitions` that stand for something."""
        ...

    def outgrown(self, logged: Mapping[str, Any]) -> bool:
        """Whether an epoch's offsets speak of partitions that were not there at the last look."""
        ...

    def refresh(self) -> None:
        """Forgets how many partitions there were; `present` then looks again, and raises SourceFailure in vain."""
        ...


@runtime_checkable
class NotedSource(Protocol):
    """What a source also has that is told how far the job has come, for others to see."""

    def committed(self, logged: Mapping[str, Any]) -> None:
        """An epoch is done, with these offsets of one of the query's sources. Returns at once and never raises."""
        ...

    def close(self) -> None: ...


class EpochRows(Protocol):
    """The rows of one epoch for one sink; nothing is collected yet.

    They are counted on their way by the first action that reads them, so a sink reads all of them in one: what it does
    before that leaves `frame` alone, and it says that it is unavailable before that or after.
    """

    @property
    def frame(self) -> DataFrame:
        """The sink's columns, in any order and with others beside them: to select is the sink's."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Streams exactly the sink's columns through the driver in bounded memory; called again, the same rows."""
        ...


@dataclass(frozen=True)
class SinkContext:
    """Who is writing. `lineage` and `sink` key the ledger; `attempt` fences an older driver of the same job."""

    job: str
    lineage: str
    sink: str
    attempt: int
    columns: tuple[Column, ...]
    options: dict[str, Any]  # validated, secrets resolved
    base: Path  # relative paths in options are relative to this folder
    # Call with `mid_sink`, `before_sink_commit`, `after_sink_commit`. What it raises before the commit calls the epoch
    # off: nothing of it may be seen then, and `write` is called for it again.
    failpoint: Callable[[str], None]
    show: Callable[[str], None]  # a line for people, used by the console sink
    keeps_refused: bool = False  # whether something reads `<sink>.errors`; rows then have more columns than `columns`


class Sink(Protocol):
    """`exactly_once` says whether the sink keeps a ledger; without one, a replayed epoch is written again."""

    exactly_once: bool

    def open(self) -> int | None:
        """Takes over from older attempts and checks the target; the last epoch it holds, None when it has none.

        Creates a missing table or folder. Raises SinkMismatch naming the column when an existing one does not
        fit, Fenced when a newer attempt has been here, SinkUnavailable when it may work later.
        """
        ...

    def held(self, epoch: int) -> int | None:
        """How many rows this sink committed for `epoch`; None when it does not hold that epoch.

        Raises Fenced when a newer attempt has taken over: an epoch that it wrote is not one that this driver did.
        """
        ...

    def write(self, epoch: int, rows: EpochRows) -> int:
        """Commits the rows of `epoch` with the ledger entry; returns how many it wrote.

        Not called for an epoch that `held` knows, nor for one older than the last. After SinkUnavailable it is
        called again with the same rows, unless `held` says that the commit had been made after all. Raises Fenced
        when a newer attempt has taken over (nothing is then visible), DiskFull when nothing was committed.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class RefusingSink(Protocol):
    """A sink whose target may refuse rows by their content: it commits the others and keeps the refused ones.

    They are kept in the transaction that commits the epoch, until the next epoch is written, so that a replay finds
    them again: they go to `<sink>.errors` after the commit, with all columns they came with, `_error_code` and
    `_error`. When nothing reads that port they are only counted.
    """

    def refused(self, epoch: int) -> int:
        """How many rows of the last epoch written were refused; 0 for any other epoch."""
        ...

    def refused_rows(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Those rows in bounded memory; may be asked for again. Nothing unless `keeps_refused` was set."""
        ...
