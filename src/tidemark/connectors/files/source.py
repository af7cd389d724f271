"""Files as an endless stream: whole files, in order of modification time, never skipped for their age."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tidemark.connectors.connector import EpochScan, FlatJson, Records, SourceContext
from tidemark.connectors.files.flat_json import flat_lines
from tidemark.connectors.paths import local_path
from tidemark.errors import SourceUnreadable
from tidemark.schema import parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What has a meaning in the paths that Spark's readers take.
_PATTERN_SIGN = re.compile(r"[{}\[\]*?\\]")
_GLOB = set("*?[{")


class FilesSource:
    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._format = context.plan.format
        self._path = str(local_path(context.options["path"], context.base))

    @property
    def partitions(self) -> int:
        return int(self._context.options.get("partitions") or 1)

    def stream(self, spark: SparkSession) -> Records:
        self._require_path()
        reader = self._context.reader(spark).format(self._spark_format())
        if self._format == "parquet":
            reader = reader.schema(self._parquet_schema())
        records = self._records(reader.options(**self._options()).load(self._path))
        return replace(records, flat_json=self._flat_json(spark)) if self._format == "jsonl" else records

    def reread(self, spark: SparkSession, scan: EpochScan) -> Records:
        reader = spark.read.format(self._spark_format())
        if self._format == "parquet":
            reader = reader.schema(self._parquet_schema())
        return self._records(reader.load([_PATTERN_SIGN.sub(r"\\\g<0>", name) for name in scan.files()]))

    def unread(self, end: str | None, latest: str | None) -> int | None:
        return None

    def _flat_json(self, spark: SparkSession) -> FlatJson:
        def read(columns: str, options: Mapping[str, str]) -> DataFrame:
            reader = self._context.reader(spark).format("json").schema(columns)
            return reader.options(**options, **self._options()).load(self._path)

        return FlatJson(read, lambda scan: flat_lines(scan.files()))

    def _records(self, frame: DataFrame) -> Records:
        file = F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")
        if self._format == "parquet":
            row = F.col("_metadata.row_index")
            frame = frame.select("*", file.alias("__tm_file"), row.alias("__tm_row"))
            identity = F.concat_ws("/", "__tm_file", "__tm_row")
            return Records(frame, identity, offset=F.col("__tm_row"), **self._partitioning())
        frame = frame.select(F.col("value").alias("__tm_line"), file.alias("__tm_file"))
        if self._format != "text":
            # Blank lines separate records in these formats; they are not records.
            frame = frame.where(F.length(F.trim("__tm_line")) > 0)
        identity = F.concat_ws("/", "__tm_file", F.md5("__tm_line"))
        return Records(frame, identity, value=F.col("__tm_line"), **self._partitioning())

    def _partitioning(self) -> dict[str, Any]:
        return {"partition_column": self._context.options.get("partition"), "partitions": self.partitions}

    def _spark_format(self) -> str:
        return "parquet" if self._format == "parquet" else "text"

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"maxFileAge": "36500d", "recursiveFileLookup": "true"}
        if limit := self._context.options.get("max_files_per_epoch"):
            options["maxFilesPerTrigger"] = limit
        return options

    def _parquet_schema(self) -> str:
        def stored(text: str) -> str:
            type_ = parse_type(text)
            return "bigint" if type_.unit else type_.ddl

        return ", ".join(f"`{column.name}` {stored(column.type)}" for column in self._context.plan.columns)

    def _require_path(self) -> None:
        if _GLOB & set(self._path):
            return
        if not local_path(self._path, self._context.base).exists():
            raise SourceUnreadable(
                f"source {self._context.plan.id}: {self._context.options['path']} does not exist",
                hint="create the folder (it may be empty) or correct `path`",
                step=self._context.plan.id,
            )
