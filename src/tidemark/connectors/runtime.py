"""Which class reads or writes for each connector. The pure half, options and guarantees, is in the catalogue."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.connectors.connector import Sink, SinkContext, Source, SourceContext
from tidemark.connectors.console.sink import ConsoleSink
from tidemark.connectors.files.sink import FilesSink
from tidemark.connectors.files.source import FilesSource
from tidemark.connectors.generator.source import GeneratorSource
from tidemark.connectors.kafka.sink import kafka_sink
from tidemark.connectors.kafka.source import KafkaSource
from tidemark.connectors.postgres.sink import PostgresSink
from tidemark.connectors.sqlite.sink import SqliteSink

SOURCES: dict[str, Callable[[SourceContext], Source]] = {
    "files": FilesSource,
    "generator": GeneratorSource,
    "kafka": KafkaSource,
}
SINKS: dict[str, Callable[[SinkContext], Sink]] = {
    "console": ConsoleSink,
    "files": FilesSink,
    "kafka": kafka_sink,
    "postgres": PostgresSink,
    "sqlite": SqliteSink,
}
