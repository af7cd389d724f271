"""What could not be read, came too late or was refused ends in one topic, once, and leads back to its record."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from connectors.kafka.running_jobs import KafkaJob
from pyspark.sql import SparkSession

from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Record, Topics

JOB = """\
tidemark: 1
name: dead-letters
parallelism: 2
epoch: {max_events: 4}
sources:
  notes:
    kafka: {topic: IN, servers: $KAFKA}
    format: json
    schema: {id: string, text: string, t: timestamp(s)}
    event_id: id
    event_time: t
    watermark: {delay: 0s, idle_timeout: 10m}
operators:
  per_minute: {type: window, input: notes, key: [id], window: {tumbling: 1m}, aggregate: {notes: count()}}
sinks:
  out: {input: notes, kafka: {topic: IN-out, servers: $KAFKA, namespace: IN, key: [id]}}
  counts: {input: per_minute, files: {path: counts, format: jsonl}}
  bad: {input: notes.errors, kafka: {topic: IN-dead, servers: $KAFKA, namespace: IN}}
  late: {input: per_minute.late, kafka: {topic: IN-dead, servers: $KAFKA, namespace: IN}}
  refused: {input: out.errors, kafka: {topic: IN-dead, servers: $KAFKA, namespace: IN}}
"""
# In base64 it is larger than a topic takes by default.
POISON = b'\x00\xff{"id": "half' + random.Random(1).randbytes(900_000)
# Two of each partition in an epoch: the fourth has a poison record and one for a minute that is closed by then.
TIMES = ((0, 1, 100, 101, 200, 201, 5, 202), (0, 1, 100, 101, 200, 201, None, 202))


def note(partition: int, number: int, time: int | None) -> Record:
    text = "long " * 1_000 if (partition, number) == (1, 3) else "short"
    fields = {"id": f"{partition}-{number}", "text": text, "t": time}
    return Record(POISON if time is None else json.dumps(fields).encode(), b"key", partition, headers={"h": b"v"})


@pytest.mark.slow
def test_dead_letters_of_source_operator_and_sink(
    spark: SparkSession,
    tmp_path: Path,
    kafka_broker: KafkaBroker,
    topics: Topics,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA", kafka_broker.servers)
    topics.create(name, 2)
    topics.create(f"{name}-out", max_message_bytes="2000")
    topics.produce(name, [note(p, n, time) for p, times in enumerate(TIMES) for n, time in enumerate(times)])
    job = KafkaJob(spark, tmp_path, JOB.replace("IN", name))
    total = job.drain().total
    letters = [json.loads(record.value or b"") for record in topics.read(f"{name}-dead")]
    assert len(letters) == 3
    found = {(record.partition, record.offset): record.value for record in topics.read(name)}
    by_kind = {letter.get("_error_code", "late"): letter for letter in letters}
    assert base64.b64decode(by_kind["invalid_utf8"]["_raw"]) == POISON
    assert by_kind["invalid_utf8"]["_event_id"] == f"{name}/1/6"
    assert (by_kind["late"]["id"], by_kind["late"]["window_end"]) == ("0-6", "1970-01-01T00:01:00Z")
    assert (by_kind["too_large"]["id"], by_kind["too_large"]["text"]) == ("1-3", "long " * 1_000)
    for letter in letters:
        assert (letter["_source"], letter["_key"], letter["_headers"]) == ("notes", "key", {"h": "v"})
        origin = found[letter["_partition"], letter["_offset"]]
        assert origin == POISON or json.loads(origin or b"")["id"] == letter["id"]
    assert len(topics.read(f"{name}-out")) == 14 == total.sinks["out"].rows
    assert [total.sinks[sink].rows for sink in ("bad", "late", "refused")] == [1, 1, 1]
