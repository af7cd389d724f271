"""Every connector a definition can name. The one list to extend beside a connector's own folder.

Pure data: what runs a connector is `source.py` and `sink.py` in the folder of its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.compiler.definition.options import SinkOptions, SourceOptions
from tidemark.connectors.console.options import ConsoleSinkOptions
from tidemark.connectors.files.options import FilesSinkOptions, FilesSourceOptions
from tidemark.connectors.generator.options import GeneratorSourceOptions
from tidemark.connectors.kafka.options import KafkaSinkOptions, KafkaSourceOptions
from tidemark.connectors.postgres.options import PostgresSinkOptions
from tidemark.connectors.sqlite.options import SqliteSinkOptions


@dataclass(frozen=True)
class Connector:
    """`formats` are those a definition may name beside the connector; `later` are directions still to come.

    `jars` is the set of jars that Spark needs for it, by its name in the lock file.
    """

    name: str
    docs: str
    source: type[SourceOptions] | None = None
    sink: type[SinkOptions] | None = None
    guarantee: str = ""
    formats: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    jars: str | None = None


CONNECTORS: tuple[Connector, ...] = (
    Connector(
        "files",
        "Files in a directory: jsonl, csv, parquet, and text to read.",
        source=FilesSourceOptions,
        sink=FilesSinkOptions,
        guarantee="exactly once",
    ),
    Connector("generator", "Deterministic events, made from their number.", source=GeneratorSourceOptions),
    Connector("sqlite", "A table in a SQLite file.", sink=SqliteSinkOptions, guarantee="exactly once"),
    Connector("console", "Rows on the screen, for people.", sink=ConsoleSinkOptions, guarantee="none"),
    Connector(
        "kafka",
        "Topics of Apache Kafka.",
        source=KafkaSourceOptions,
        sink=KafkaSinkOptions,
        guarantee="exactly once for readers of committed records; at least once when `delivery` says so",
        formats=("json", "csv", "text", "raw"),
        jars="connector",
    ),
    Connector(
        "postgres",
        "Tables of PostgreSQL; as a source, their changes.",
        sink=PostgresSinkOptions,
        guarantee="exactly once",
        later=("source",),
    ),
    Connector("http", "Events pushed in, or rows sent out, over HTTP.", later=("source", "sink")),
    Connector("delta", "Tables of Delta Lake.", later=("sink",)),
    Connector("redis", "Keys of Redis.", later=("sink",)),
)

BY_NAME = {connector.name: connector for connector in CONNECTORS}
SOURCES = tuple(connector.name for connector in CONNECTORS if connector.source or "source" in connector.later)
SINKS = tuple(connector.name for connector in CONNECTORS if connector.sink or "sink" in connector.later)
FORMATS_TO_COME = ("debezium", "avro")
