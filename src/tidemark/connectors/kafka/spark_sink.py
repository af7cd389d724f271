"""The Kafka sink that Spark writes itself: from the executors, at least once. A replayed epoch is written again."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.connectors.connector import EpochRows, SinkContext
from tidemark.connectors.kafka.client import java_settings, librdkafka_settings
from tidemark.connectors.kafka.faults import named_sink_faults
from tidemark.connectors.kafka.topics import create_missing_topic, open_admin
from tidemark.connectors.spark_rendering import cell, json_object
from tidemark.errors import SinkUnavailable
from tidemark.schema import parse_type

_CSV = {"escape": '"', "emptyValue": '""', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
_UNAVAILABLE = ("TimeoutException", "NetworkException", "DisconnectException", "NotLeaderOrFollowerException")


class SparkKafkaSink:
    exactly_once = False

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._topic: str = context.options["topic"]
        self._key: list[str] = list(context.options.get("key") or ())
        self._format: str = context.options["format"]
        self._types = {column.name: parse_type(column.type) for column in context.columns}

    def open(self) -> int | None:
        options = self._context.options
        with named_sink_faults(options["servers"], self._topic, self._context.sink):
            create_missing_topic(open_admin(librdkafka_settings(options, self._context.base)), self._topic)
        return None

    def held(self, epoch: int) -> int | None:
        return None

    def write(self, epoch: int, rows: EpochRows) -> int:
        """Kept on disk meanwhile: an observed count never comes back from Spark's Kafka writer."""
        records = self._records(rows.frame).persist(StorageLevel.DISK_ONLY)
        count = records.count()
        self._context.failpoint("mid_sink")
        try:
            self._save(records)
        finally:
            records.unpersist()
        self._context.failpoint("after_sink_commit")
        return count

    def _save(self, records: DataFrame) -> None:
        settings = java_settings(self._context.options, self._context.base, self._context.sink)
        try:
            records.write.format("kafka").option("topic", self._topic).options(**settings).save()
        except (PySparkException, Py4JError) as error:
            if any(name in str(error) for name in _UNAVAILABLE):
                message = f"Kafka at {self._context.options['servers']} does not take the rows"
                hint = "It is tried again; check that the brokers are up."
                raise SinkUnavailable(message, hint=hint, step=self._context.sink) from error
            raise

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _records(self, frame: DataFrame) -> DataFrame:
        columns = [self._value().alias("value")]
        if self._key:
            columns.append(self._key_column().alias("key"))
        return frame.select(*columns)

    def _value(self) -> Column:
        if self._format in ("text", "raw"):
            (name,) = [name for name in self._types if name not in self._key]
            return F.col(f"`{name}`")
        if self._format == "csv":
            return F.to_csv(F.struct(*[cell(name, type_).alias(name) for name, type_ in self._types.items()]), _CSV)
        return json_object(self._types)

    def _key_column(self) -> Column:
        types = {name: self._types[name] for name in self._key}
        if len(types) > 1:
            return json_object(types)
        ((name, type_),) = types.items()
        return F.col(f"`{name}`") if type_.name == "binary" else cell(name, type_)
