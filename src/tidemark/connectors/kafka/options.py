"""Options of Kafka topics. Raw client properties are taken by allow-list: none that could load code or log in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from tidemark.compiler.definition.model import Model, Text, Texts, instant, problem
from tidemark.compiler.definition.options import (
    SINGLE_COLUMN,
    SinkOptions,
    SourceOptions,
    compound_columns,
    missing_columns,
)
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.schema import Type

_SECRET = re.compile(r"\$[A-Z_][A-Z0-9_]*")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}|.*\$[A-Z_].*")
_START_HINT = "Write `earliest`, `latest`, `{timestamp: 2026-01-01T00:00:00Z}` or `{offsets: {topic: {0: 100}}}`."
# Of the Java client, which Spark reads with. Nothing here names a class, a file or a login.
SOURCE_PROPERTIES = (
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
)
# Names that librdkafka, which writes exactly once, and the Java client have in common.
SINK_PROPERTIES = (
    "batch.size",
    "client.id",
    "client.rack",
    "compression.type",
    "connections.max.idle.ms",
    "linger.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "transaction.timeout.ms",
)


def _start(value: object) -> object:
    if value in ("earliest", "latest"):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, detail),) = value.items()
        if (kind == "timestamp" and _is_instant(detail)) or (kind == "offsets" and _are_offsets(detail)):
            return value
    raise problem("bad_value", "`start` does not say where to begin", _START_HINT)


def _is_instant(value: object) -> bool:
    try:
        instant(value if isinstance(value, str) else "")
    except (ValueError, OverflowError):
        return False
    return True


def _are_offsets(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(_are_positions(item) for item in value.values())


def _are_positions(value: object) -> bool:
    return isinstance(value, dict) and all(
        str(partition).isdigit() and isinstance(offset, int) and offset >= 0 for partition, offset in value.items()
    )


Start = Annotated[Any, PlainValidator(_start)]


class Security(Model):
    """How to reach the brokers: TLS by the files, SASL by user name and password. A password is always a `$NAME`."""

    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: Text | None = None
    password: Text | None = None
    ca: Text | None = None
    cert: Text | None = None
    key: Text | None = None
    key_password: Text | None = None

    def problems(self) -> Iterator[Problem]:
        yield from self._login_problems()
        yield from self._tls_problems()
        for name in ("password", "key_password"):
            value = getattr(self, name)
            if value is not None and not _SECRET.fullmatch(value):
                hint = f"Write `{name}: $KAFKA_PASSWORD` and set that variable where the job runs."
                yield Problem("bad_value", f"`{name}` stands in the definition itself", hint, (name,))

    def _login_problems(self) -> Iterator[Problem]:
        fields = ("mechanism", "username", "password")
        for name in fields:
            if self.protocol.startswith("sasl") and getattr(self, name) is None:
                yield Problem("missing_field", f"`{self.protocol}` needs `{name}`", f"Add `{name}: …`.", ("protocol",))
            if not self.protocol.startswith("sasl") and getattr(self, name) is not None:
                hint = "Write `protocol: sasl_ssl`, or leave it out."
                yield Problem("bad_value", f"`{name}` has no use with `protocol: {self.protocol}`", hint, (name,))

    def _tls_problems(self) -> Iterator[Problem]:
        for name in ("ca", "cert", "key", "key_password"):
            if not self.protocol.endswith("ssl") and getattr(self, name) is not None:
                hint = "Write `protocol: ssl` or `sasl_ssl`, or leave it out."
                yield Problem("bad_value", f"`{name}` has no use with `protocol: {self.protocol}`", hint, (name,))
        for name, other in (("cert", "key"), ("key", "cert"), ("key_password", "key")):
            if getattr(self, name) is not None and getattr(self, other) is None:
                yield Problem("missing_field", f"`{name}` needs `{other}` beside it", f"Add `{other}: …`.", (name,))


class KafkaSourceOptions(SourceOptions):
    """One `topic`, or several `topics` that are read as one. `group` is where the offsets of done epochs are noted."""

    servers: Text
    topic: Text | None = None
    topics: Texts = ()
    start: Start = "earliest"
    group: Text | None = None
    security: Security | None = None
    properties: dict[str, Text] = Field(default_factory=dict)

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        yield from self._topic_problems()
        yield from _common_problems(self.security, self.properties, SOURCE_PROPERTIES)
        if isinstance(self.start, dict):
            for topic in self.start.get("offsets", ()):
                if topic not in self._all_topics():
                    hint = hint_for(topic, self._all_topics(), what="topics")
                    yield Problem(
                        "bad_value", f"`start` names the topic `{topic}`, which is not read", hint, ("start",)
                    )

    def planned(self, computed: Mapping[str, str]) -> dict[str, Any]:
        planned = self.model_dump(mode="json", exclude={"topic"})
        start = self.start
        if isinstance(start, dict) and "timestamp" in start:
            planned["start"] = {"timestamp_ms": round(instant(start["timestamp"]).timestamp() * 1000)}
        return {**planned, "topics": self._all_topics()}

    def _all_topics(self) -> list[str]:
        return [self.topic] if self.topic is not None else list(self.topics)

    def _topic_problems(self) -> Iterator[Problem]:
        if (self.topic is None) == (not self.topics):
            hint = "Write `topic: name`, or `topics: [one, another]`."
            yield Problem("missing_field", "a Kafka source needs either `topic` or `topics`", hint, at_key=True)
        if len(set(self.topics)) < len(self.topics):
            yield Problem("duplicate_field", "a topic is named twice", "Keep one of them.", ("topics",))
        for topic in self._all_topics():
            yield from _bad_topic(topic, ("topic",) if self.topic is not None else ("topics",))


class KafkaSinkOptions(SinkOptions):
    """One record for each row, with the key made of the columns in `key`. A missing topic is created."""

    servers: Text
    topic: Text
    key: Texts = ()
    format: Literal["json", "csv", "text", "raw"] = "json"
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    namespace: Text = "tidemark"
    security: Security | None = None
    properties: dict[str, Text] = Field(default_factory=dict)

    @property
    def refuses(self) -> bool:
        """Spark's own writer does not tell one row from another."""
        return self.delivery == "exactly_once"

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        yield from missing_columns(self.key, columns, "key")
        yield from compound_columns(self.key, columns, "key")
        if len(set(self.key)) < len(self.key):
            yield Problem("duplicate_field", "the key names a column twice", "Keep one of them.", ("key",))
        yield from _bad_topic(self.topic, ("topic",))
        yield from _bad_topic(self.namespace, ("namespace",))
        yield from self._format_problems(columns)
        yield from _common_problems(self.security, self.properties, SINK_PROPERTIES)

    def _format_problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        needed = SINGLE_COLUMN.get(self.format)
        values = [str(type_) for name, type_ in columns.items() if name not in self.key]
        if needed and columns and values != [needed]:
            message = f"`format: {self.format}` writes exactly one {needed} column beside the key"
            yield Problem("schema_mismatch", message, "Choose `format: json`, or map to one column.", ("format",))


def _bad_topic(name: str, path: Path) -> Iterator[Problem]:
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        hint = "Kafka allows letters, digits, `.`, `_` and `-`, 249 characters at most."
        yield Problem("bad_value", f"`{name[:60]}` cannot be the name of a topic", hint, path)


def _common_problems(
    security: Security | None, properties: Mapping[str, str], allowed: Iterable[str]
) -> Iterator[Problem]:
    for name in properties:
        if name not in allowed:
            hint = hint_for(name, allowed, what="properties")
            yield Problem("bad_value", f"the property `{name}` cannot be set", hint, ("properties", name), at_key=True)
    for found in security.problems() if security else ():
        yield found.below("security")
