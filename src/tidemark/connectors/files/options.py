"""Options of files: what to read or write, and in which format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from tidemark.compiler.definition.model import Text, Texts
from tidemark.compiler.definition.options import SinkOptions, SourceOptions, compound_columns, missing_columns
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.schema import INTEGRAL, Type

MAX_PARTITIONS = 1024


class FilesSourceOptions(SourceOptions):
    """`path` is a directory or a glob. With `partition`, events are spread over `partitions` by that column."""

    path: Text
    format: Literal["jsonl", "csv", "parquet", "text"]
    max_files_per_epoch: Annotated[int, Field(ge=1)] | None = None
    partition: Text | None = None
    partitions: Annotated[int, Field(ge=1, le=MAX_PARTITIONS)] | None = None

    @property
    def record_format(self) -> str:
        return self.format

    def default_schema(self) -> dict[str, str] | None:
        return {"value": "string"} if self.format == "text" else None

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        yield from self._partition_problems(columns)
        if self.format == "text" and [str(type_) for type_ in columns.values()] != ["string"]:
            hint = "Leave the schema out (the column is then `value`), or name one string column."
            yield Problem("schema_mismatch", "a line of text is exactly one string column", hint, ("format",))

    def _partition_problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        if (self.partition is None) != (self.partitions is None):
            given, lacking = ("partition", "partitions") if self.partition else ("partitions", "partition")
            message = f"`{given}` needs `{lacking}` beside it"
            hint = "Write both, `partition: <integer column>` and `partitions: N`, or neither."
            yield Problem("partition_mismatch", message, hint, (given,))
        if self.partition is None:
            return
        if self.partition not in columns:
            hint = hint_for(self.partition, columns, what="columns")
            yield Problem("unknown_column", f"there is no column `{self.partition}` here", hint, ("partition",))
        elif columns[self.partition].name not in INTEGRAL:
            message = f"`{self.partition}` is {columns[self.partition]}, and a partition must be int or long"
            yield Problem("wrong_column_type", message, "Choose an integer column.", ("partition",))


class FilesSinkOptions(SinkOptions):
    """Part files under `path`, in folders by `partition_by` when given."""

    path: Text
    format: Literal["jsonl", "csv", "parquet"]
    partition_by: Texts = ()

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        yield from missing_columns(self.partition_by, columns, "partition_by")
        yield from compound_columns(self.partition_by, columns, "partition_by")
        if len(set(self.partition_by)) < len(self.partition_by):
            yield Problem("duplicate_field", "a column is named twice", "Keep one of them.", ("partition_by",))
        if columns and set(columns) <= set(self.partition_by):
            message = "no column is left for the files when all of them name folders"
            yield Problem("bad_value", message, "Take a column out of `partition_by`.", ("partition_by",))
