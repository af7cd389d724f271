"""Kafka to Kafka by the command, in processes of its own: the jars are found, and both deliveries work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Record, Topics

JOB = """\
tidemark: 1
name: kafka-to-kafka
sources:
  orders:
    kafka: {topic: IN, servers: $KAFKA}
    format: json
    schema: {store: string, amount: double, t: timestamp(s)}
    event_time: t
operators:
  per_minute:
    type: window
    input: orders
    key: [store]
    window: {tumbling: 1m}
    aggregate: {orders: count(), revenue: sum(amount)}
sinks:
  exact: {input: per_minute, kafka: {topic: IN-exact, servers: $KAFKA, key: [store], namespace: IN}}
  loose: {input: per_minute, kafka: {topic: IN-loose, servers: $KAFKA, key: [store], delivery: at_least_once}}
  bad: {input: orders.errors, kafka: {topic: IN-bad, servers: $KAFKA, namespace: IN}}
"""


@pytest.mark.spark
@pytest.mark.slow
def test_kafka_to_kafka(kafka_broker: KafkaBroker, topics: Topics, name: str, tmp_path: Path) -> None:
    topics.create(name, 2)
    orders = [json.dumps({"store": f"s{n % 3}", "amount": n / 2, "t": n}).encode() for n in range(180)]
    records = [Record(order, None, n % 2, headers={"n": b"%d" % n}) for n, order in enumerate(orders)]
    topics.produce(name, [*records, Record(b"\xff\x00", b"poison", headers={"trace": b"7"})])
    (tmp_path / "job.yaml").write_text(JOB.replace("IN", name))
    answer = tidemark_run(tmp_path, kafka_broker.servers)
    assert answer["sources"]["orders"] == {"in": 181, "accepted": 180, "errors": 1}
    expected = sorted(
        (f"s{store}", minute, 20, sum(n / 2 for n in range(60 * minute, 60 * minute + 60) if n % 3 == store))
        for store in range(3)
        for minute in range(3)
    )
    for topic in (f"{name}-exact", f"{name}-loose"):
        assert windows(topics.read(topic)) == expected
    (bad,) = [json.loads(record.value or b"") for record in topics.read(f"{name}-bad")]
    assert (bad["_raw"], bad["_error_code"], bad["_key"], bad["_headers"]) == (
        "/wA=",
        "invalid_utf8",
        "poison",
        {"trace": "7"},
    )
    assert topics.group_offsets("tidemark.kafka-to-kafka.orders", name) == topics.end_offsets(name, committed=True)


def tidemark_run(folder: Path, servers: str) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-m", "tidemark", "run", "job.yaml", "--until-drained", "--json"]
    environment = {**os.environ, "KAFKA": servers, "TIDEMARK_DRIVER_MEMORY": "1g"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, dict[str, object]] = json.loads(done.stdout)
    return answer


def windows(records: list[Record]) -> list[tuple[str, int, int, float]]:
    rows = [(record.key, json.loads(record.value or b"")) for record in records]
    assert all(key == row["store"].encode() for key, row in rows)
    return sorted((row["store"], int(row["window_start"][14:16]), row["orders"], row["revenue"]) for _, row in rows)
