"""What a connector must provide, and what the engine promises it.

The engine calls a sink from one thread, in this order: `open` once per start, then for every epoch `held` and,
unless the sink already holds it, `write`; at the end `close`. After a crash an epoch is offered again with the
same rows. `write` must make rows and ledger entry durable together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tidemark.compiler.plan.plan import Column


class EpochRows(Protocol):
    """The rows of one epoch for one sink: exactly the sink's columns, nothing collected yet."""

    @property
    def frame(self) -> DataFrame: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Streams the rows through the driver in bounded memory; may be called once."""
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
    failpoint: Callable[[str], None]  # call with `mid_sink`, `before_sink_commit`, `after_sink_commit`
    show: Callable[[str], None]  # a line for people, used by the console sink


class Sink(Protocol):
    """Exactly once as seen by readers, unless the connector's docs say otherwise."""

    def open(self) -> int | None:
        """Takes over from older attempts and checks the target; the last epoch it holds, None when it has none.

        Creates a missing table or folder. Raises SinkMismatch naming the column when an existing one does not
        fit, Fenced when a newer attempt has been here, SinkUnavailable when it may work later.
        """
        ...

    def held(self, epoch: int) -> int | None:
        """How many rows this sink committed for `epoch`; None when it does not hold that epoch."""
        ...

    def write(self, epoch: int, rows: EpochRows) -> int:
        """Commits the rows of `epoch` with the ledger entry; returns how many it wrote.

        Not called for an epoch that `held` knows, nor for one older than the last. Raises Fenced when a newer
        attempt has taken over (nothing is then visible), SinkUnavailable or DiskFull when nothing was committed.
        """
        ...

    def close(self) -> None: ...
