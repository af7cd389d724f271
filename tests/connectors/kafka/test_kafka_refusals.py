"""Rows that a topic cannot take: the rest is committed, and they are kept with the reason, whatever their size."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from connectors.arrow_rows import ArrowRows, columns_of, context_for
from support.waiting import wait_until

from tidemark.compiler.plan.plan import Column
from tidemark.connectors.kafka import topics as topics_module
from tidemark.connectors.kafka.sink import KafkaSink
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics

COLUMNS = columns_of(k="string", n="long")
LIMIT = 2_000


def opened(broker: KafkaBroker, name: str, columns: tuple[Column, ...] = COLUMNS, **more: Any) -> KafkaSink:
    options = {"servers": broker.servers, "topic": name, "namespace": name, "format": "json", "key": (), **more}
    sink = KafkaSink(context_for(Path(), options, columns, keeps_refused=True))
    sink.open()
    return sink


def refused(sink: KafkaSink, epoch: int) -> list[dict[str, Any]]:
    return [row for batch in sink.refused_rows(epoch) for row in batch.to_pylist()]


def not_utf8(*values: bytes) -> pa.Array:
    """Texts as Spark may hand them over."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), binary.buffers())


@pytest.mark.parametrize("form", [{"format": "json"}, {"format": "csv"}, {"format": "text", "key": ("n",)}])
def test_a_text_that_is_not_utf8(form: dict[str, Any], kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    rows = ArrowRows({"k": not_utf8(b"good", b'\xff"', b"fine"), "n": [1, 2, 3]}, 10)
    with closing(opened(kafka_broker, name, **form)) as sink:
        assert sink.write(0, rows) == 2
        (batch,) = sink.refused_rows(0)
    assert (batch.column("n").to_pylist(), batch.column("_error_code").to_pylist()) == ([2], ["bad_text"])
    assert batch.column("k").cast(pa.binary()).to_pylist() == [b'\xff"']
    assert batch.column("_error").to_pylist() == ["column `k` holds a text that is not UTF-8"]
    assert [b"good" in (record.value or b"") for record in topics.read(name)] == [True, False]


def test_rows_of_every_size_around_the_limit(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    """Whatever the sink sends the broker takes: a single refusal there would abort the whole epoch."""
    topics.create(name, max_message_bytes=str(LIMIT))
    chance = random.Random(1)
    sizes = list(range(LIMIT - 200, LIMIT + 20))
    values = [chance.randbytes(size) for size in sizes]
    rows = ArrowRows({"k": [f"{size}" for size in sizes], "v": values}, batch_rows=50)
    columns = columns_of(k="string", v="binary")
    with closing(opened(kafka_broker, name, columns, format="raw", key=("k",))) as sink:
        taken = sink.write(0, rows)
        kept = refused(sink, 0)
    assert [row["v"] for row in kept] == values[taken:]
    assert [record.value for record in topics.read(name)] == values[:taken]
    assert LIMIT - 110 < len(values[taken - 1]) < LIMIT - 60
    assert kept[0]["_error"] == f"the record has {LIMIT + 1} bytes, and the topic takes {LIMIT}"


def test_refused_rows_of_many_chunks_and_larger_than_any_message(
    kafka_broker: KafkaBroker, topics: Topics, name: str
) -> None:
    topics.create(name, max_message_bytes=str(LIMIT))
    columns = columns_of(k="string", m="map<string,int>", at="timestamp")
    sizes = {7: 3_000, 1_100: 2_500_000, 1_101: 4_000}
    rows = {
        "k": ["x" * sizes.get(n, 5) for n in range(2_000)],
        "m": pa.array([[("a", n)] for n in range(2_000)], pa.map_(pa.string(), pa.int32())),
        "at": pa.array(range(2_000), pa.timestamp("us", tz="UTC")),
        "_event_id": [f"orders/0/{n}" for n in range(2_000)],
    }
    with closing(opened(kafka_broker, name, columns)) as sink:
        assert sink.write(0, ArrowRows(rows, batch_rows=500)) == 1_997
        kept = pa.Table.from_batches(sink.refused_rows(0))
    assert kept.drop(["_error_code", "_error"]) == pa.table(rows).take(list(sizes))
    assert len(topics.read(name)) == 1_997


def test_what_was_kept_is_taken_away_by_the_next_epoch(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    topics.create(name, max_message_bytes=str(LIMIT))
    with closing(opened(kafka_broker, name)) as sink:
        sink.write(0, ArrowRows({"k": ["x" * 20_000, "a"], "n": [1, 2]}, 10))
        sink.write(1, ArrowRows({"k": ["b"], "n": [3]}))
    newest = {record.key: record.value for record in topics.read(f"{name}.job.out.refused")}
    assert len(newest) > 10
    assert set(newest.values()) == {None}


def test_a_limit_that_is_lowered_while_the_job_runs(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    topics.create(name)
    chance = random.Random(2)
    rows = ArrowRows({"k": ["a", chance.randbytes(3_000).hex(), "b"], "n": [1, 2, 3]}, 10)
    with closing(opened(kafka_broker, name)) as sink:
        assert sink.write(0, rows) == 3
        lower_limit(topics, name)
        assert sink.write(1, rows) == 2
        assert [row["n"] for row in refused(sink, 1)] == [2]
    assert len(topics.read(name)) == 5


def lower_limit(topics: Topics, name: str) -> None:
    entry = ConfigEntry("max.message.bytes", str(LIMIT), incremental_operation=AlterConfigOpType.SET)
    (done,) = topics.admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])]
    ).values()
    done.result(30)
    wait_until(lambda: topics_module.topic_settings(topics.admin, name)["max.message.bytes"] == str(LIMIT))


def test_a_topic_made_for_rows_with_a_reason_takes_large_ones(
    kafka_broker: KafkaBroker, topics: Topics, name: str
) -> None:
    rows = ArrowRows({"_raw": [random.Random(3).randbytes(3_000_000)], "_error_code": ["bad_json"]})
    with closing(opened(kafka_broker, name, columns_of(_raw="binary", _error_code="string"))) as sink:
        assert sink.write(0, rows) == 1
    (record,) = topics.read(name)
    assert len(record.value or b"") > 4_000_000


def test_nothing_is_made_for_a_port_that_nobody_reads(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    options = {"servers": kafka_broker.servers, "topic": name, "namespace": name, "format": "json", "key": ()}
    with closing(KafkaSink(context_for(Path(), options, COLUMNS))) as sink:
        sink.open()
    assert f"{name}.job.out.ledger" in topics.admin.list_topics(timeout=30).topics
    assert f"{name}.job.out.refused" not in topics.admin.list_topics(timeout=30).topics
