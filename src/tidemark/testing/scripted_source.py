"""A source that reads what a test wrote: one file of records for each step of the test.

The records go through the same decoding as those of a real source. A file appears whole, by a rename.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from tidemark.compiler.definition.case import RECORD_FIELDS
from tidemark.compiler.definition.model import instant
from tidemark.compiler.plan.plan import SourcePlan
from tidemark.connectors.connector import EpochScan, Records, SourceContext
from tidemark.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECTOR = "scripted"
Event = Mapping[str, Any]
# Names that no payload column can have.
_VALUE, _AT, _OF, _OFFSET, _BY = (f"__tm_script_{name}" for name in ("value", "time", "partition", "offset", "key"))
_ARROW = pa.schema(
    [
        (_VALUE, pa.binary()),
        (_AT, pa.timestamp("us", tz="UTC")),
        (_OF, pa.int32()),
        (_OFFSET, pa.int64()),
        (_BY, pa.string()),
    ]
)
_DDL = f"{_VALUE} binary, {_AT} timestamp, {_OF} int, {_OFFSET} bigint, {_BY} string"


def scripted(plan: SourcePlan, folder: Path) -> SourcePlan:
    """The same source with its events taken from `folder`; relative order, ids, time and watermark stay its own."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {
        "path": str(folder),
        "partitions": plan.options.get("partitions") or 1,
        "partition": plan.options.get("partition"),
        "timed": plan.connector != "files",
    }
    return plan.model_copy(update={"connector": CONNECTOR, "format": "jsonl", "options": options})


class ScriptedSource:
    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._options = context.options

    @property
    def partitions(self) -> int:
        return int(self._options["partitions"])

    def stream(self, spark: SparkSession) -> Records:
        reader = self._context.reader(spark).format("parquet").schema(_DDL).option("maxFileAge", "36500d")
        return self._records(reader.load(self._options["path"]))

    def reread(self, spark: SparkSession, scan: EpochScan) -> Records:
        return self._records(spark.read.schema(_DDL).parquet(*scan.files()))

    def unread(self, end: str | None, latest: str | None) -> int | None:
        return None

    def _records(self, frame: DataFrame) -> Records:
        return Records(
            frame,
            F.concat_ws("/", F.lit(self._context.plan.id), _OF, _OFFSET),
            value=F.col(_VALUE).cast("string"),
            time=F.col(_AT) if self._options["timed"] else None,
            key=F.col(_BY),
            partition=F.col(_OF),
            offset=F.col(_OFFSET),
            partition_column=self._options["partition"],
            partitions=self.partitions,
        )


@dataclass
class Feed:
    """Writes the records of one source. Offsets count up by partition, from 0."""

    plan: SourcePlan
    _offsets: Counter[int] = field(default_factory=Counter)

    def prepare(self, step: int, events: Iterable[Event]) -> Path | None:
        """Writes a step beside the place where it is read; `publish` shows it. None when there is nothing to show."""
        records = [self._record(event) for event in events]
        if not records:
            return None
        folder = Path(self.plan.options["path"])
        hidden = folder.with_name(f".{folder.name}-{step:06d}.parquet")
        pq.write_table(pa.Table.from_pylist(records, _ARROW), hidden, compression="none")
        return hidden

    def publish(self, hidden: Path) -> None:
        os.rename(hidden, Path(self.plan.options["path"]) / hidden.name.lstrip("."))

    def pass_over(self, events: Iterable[Event]) -> None:
        """Counts events that an earlier process has written."""
        for event in events:
            self._record(event)

    def _record(self, event: Event) -> dict[str, Any]:
        partition = self._partition(event)
        offset = self._offsets[partition]
        self._offsets[partition] += 1
        return {_VALUE: _value(event), _AT: _time(event), _OF: partition, _OFFSET: offset, _BY: event.get("_key")}

    def _partition(self, event: Event) -> int:
        partition, count = event.get("_partition", 0), int(self.plan.options["partitions"])
        if not isinstance(partition, int) or not 0 <= partition < count:
            raise UsageError(
                f"source {self.plan.id} has no partition {partition!r}",
                hint=f"`_partition` is 0 to {count - 1} here",
                step=self.plan.id,
            )
        return partition


def _value(event: Event) -> bytes:
    raw = event.get("_raw")
    if raw is not None:
        return raw if isinstance(raw, bytes) else str(raw).encode()
    payload = {name: value for name, value in event.items() if name not in RECORD_FIELDS}
    return json.dumps(payload, default=_plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _time(event: Event) -> datetime | None:
    time = event.get("_event_time")
    return instant(time) if isinstance(time, str) else time


def _plain(value: object) -> Any:
    """How a value that JSON has no form for is written in a record."""
    if isinstance(value, datetime):
        return instant(value.isoformat()).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise UsageError(f"an event cannot hold {value!r}, a {type(value).__name__}", hint="use plain values")
