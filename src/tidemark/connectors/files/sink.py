"""The files sink: Spark stages an epoch's files, the epoch's list commits them, renames make them visible."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from tidemark.connectors.connector import EpochRows, SinkContext
from tidemark.connectors.files.formats import FORMATS
from tidemark.connectors.files.manifest import FilesLedger, Manifest
from tidemark.connectors.local_disk import disk_full, named_disk_faults
from tidemark.connectors.paths import local_path
from tidemark.durable import sync_tree
from tidemark.errors import SinkMismatch
from tidemark.schema import parse_type

_NO_SPACE = "No space left on device"
# What Hadoop says of a folder that the disk refuses, of which only a value of a column can be the reason here.
_REFUSED_FOLDER = re.compile(r"Mkdirs failed to create .*/([^/]+=[^/]*) \(exists=false")


class FilesSink:
    """Exactly once: a reader of `path` sees whole files only, each row in one of them.

    All files of an epoch appear right after its commit, one by one, not in one step.
    """

    exactly_once = True

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._path = local_path(context.options["path"], context.base)
        self._format = FORMATS[context.options["format"]]
        self._partition_by: list[str] = context.options.get("partition_by") or []
        self._types = {column.name: parse_type(column.type) for column in context.columns}
        self._ledger = FilesLedger(context, self._path)

    def open(self) -> int | None:
        self._check_partition_columns()
        with named_disk_faults(self._path, self._context.sink):
            return self._ledger.take_over()

    def held(self, epoch: int) -> int | None:
        with named_disk_faults(self._path, self._context.sink):
            return self._ledger.held(epoch)

    def write(self, epoch: int, rows: EpochRows) -> int:
        with named_disk_faults(self._path, self._context.sink):
            staging = self._ledger.fresh_staging(epoch)
        count = self._stage(epoch, rows.frame, staging)
        self._context.failpoint("mid_sink")
        with named_disk_faults(self._path, self._context.sink):
            self._commit(self._manifest(epoch, count, staging), staging)
        return count

    def close(self) -> None:
        """Nothing is held open between calls."""

    # Expressions are made once: each part of one is a call into Spark's process.
    @cached_property
    def _columns(self) -> list[Column]:
        return self._format.columns(self._types, self._partition_by)

    @cached_property
    def _row_count(self) -> Column:
        return F.count(F.lit(1)).alias("rows")

    def _stage(self, epoch: int, frame: DataFrame, folder: Path) -> int:
        """Writes the rows and counts them in the same pass: the frame may be executed only once."""
        counted = Observation()
        rendered = frame.select(*self._columns).observe(counted, self._row_count)
        writer = rendered.write.format(self._format.writer)
        try:
            writer.options(**self._format.options).partitionBy(*self._partition_by).save(f"file://{folder}")
        except (PySparkException, Py4JError) as error:
            self._ledger.check_turn(epoch)
            if _NO_SPACE in str(error):
                raise disk_full(self._path, self._context.sink) from error
            if refused := _REFUSED_FOLDER.search(str(error)):
                raise self._no_folder(refused[1]) from error
            raise
        rows: int = counted.get["rows"]
        return rows

    def _manifest(self, epoch: int, rows: int, staging: Path) -> Manifest:
        names = self._data_files(staging) if rows else []
        files = tuple((str(name), str(name.parent / self._final_name(epoch, i))) for i, name in enumerate(names))
        return Manifest(epoch, self._context.attempt, rows, staging.name, files)

    def _data_files(self, staging: Path) -> list[Path]:
        """What Spark committed there, without what a task that nobody waits for may still be writing."""
        parts = (path for path in staging.rglob("part-*") if path.is_file() and not self._format.is_empty(path))
        return sorted(name for name in (path.relative_to(staging) for path in parts) if name.parts[0] != "_temporary")

    def _final_name(self, epoch: int, index: int) -> str:
        owner = f"{self._context.lineage}-{self._context.sink}"
        return f"part-{owner}-{epoch:010d}-{index:05d}{self._format.suffix}"

    def _commit(self, manifest: Manifest, staging: Path) -> None:
        sync_tree(staging)
        self._ledger.prepare_targets(manifest)
        with self._ledger.exclusive():
            self._ledger.check_turn(manifest.epoch)
            self._context.failpoint("before_sink_commit")
            self._ledger.commit(manifest)
            self._context.failpoint("after_sink_commit")
            self._ledger.publish(manifest)

    def _check_partition_columns(self) -> None:
        for name in self._partition_by:
            if name not in self._types:
                raise self._mismatch(f"partition column {name!r} is not in the rows", f"Choose from {[*self._types]}.")
            if self._types[name].items or self._types[name].fields:
                raise self._mismatch(f"partition column {name!r} is nested", "Choose a column with a plain type.")
        if self._partition_by and set(self._partition_by) == set(self._types):
            raise self._mismatch("partition_by leaves no column for the files", "Leave at least one column out of it.")

    def _no_folder(self, name: str) -> SinkMismatch:
        message = (
            f"no folder can have the name {name[:40]!r}{'…' if len(name) > 40 else ''}, by which rows are to be put"
        )
        hint = "A name has up to 255 bytes and no NUL: shorten the column by a map, or leave it out of `partition_by`."
        return self._mismatch(message, hint)

    def _mismatch(self, message: str, hint: str) -> SinkMismatch:
        return SinkMismatch(message, hint=hint, step=self._context.sink)
