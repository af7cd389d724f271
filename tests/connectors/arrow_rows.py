"""Epoch rows and sink contexts for tests that need no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.connector import SinkContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ArrowRows:
    """Rows given as columns, in batches of one row unless told otherwise."""

    columns: dict[str, Any]
    batch_rows: int = 1

    @property
    def frame(self) -> DataFrame:
        raise AssertionError("this sink is to take its rows from batches()")

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from pa.table(self.columns).to_batches(max_chunksize=self.batch_rows)


def columns_of(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type_) for name, type_ in types.items())


def context_for(
    base: Path,
    options: dict[str, Any],
    columns: tuple[Column, ...],
    *,
    attempt: int = 1,
    failpoint: Callable[[str], None] = lambda _: None,
    show: Callable[[str], None] = lambda _: None,
    keeps_refused: bool = False,
) -> SinkContext:
    return SinkContext("job", "lineage", "out", attempt, columns, options, base, failpoint, show, keeps_refused)
