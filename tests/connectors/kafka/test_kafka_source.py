"""Kafka as a source, through whole jobs on a real broker."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from connectors.kafka.running_jobs import KafkaJob
from pyspark.sql import SparkSession
from support.waiting import wait_until

from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Record, Topics

MakeJob = Callable[[str], KafkaJob]
_2026 = 1_767_225_600_000
SEEN = """
operators:
  seen:
    type: map
    input: events
    set: {id: _event_id, at: _event_time, by: _key, p: _partition, o: _offset, h: _headers}
sinks:
  out: {input: seen, files: {path: out, format: jsonl}}
"""


@pytest.fixture
def make_job(spark: SparkSession, tmp_path: Path, kafka_broker: KafkaBroker) -> MakeJob:
    """A job from its sources, operators and sinks; `SERVERS` stands for the broker's address."""

    def make(text: str) -> KafkaJob:
        head = "tidemark: 1\nname: shop\nepoch: {interval: 50ms}\n"
        return KafkaJob(spark, tmp_path, head + text.replace("SERVERS", kafka_broker.servers))

    return make


def at(second: float, **columns: Any) -> bytes:
    return json.dumps({"t": second, **columns}).encode()


def test_records_bring_key_headers_time_and_place(make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(name, 2)
    headers = {"trace": b"1", "bytes": b"\xff"}
    topics.produce(
        name, [Record(b'{"n": 1}', b"k\xc3\xa9y", 1, _2026 + 7, headers), Record(b'{"n": 2}', None, 1, _2026)]
    )
    source = (
        f"sources:\n  events: {{kafka: {{topic: {name}, servers: SERVERS, group: lag-of-shop}}, schema: {{n: int}}}}"
    )
    job = make_job(source + SEEN)
    ended = job.drain()
    assert job.rows("out") == [
        {"n": 1, "id": f"{name}/1/0", "at": "2026-01-01T00:00:00.007Z", "by": "kéy", "p": 1, "o": 0,
         "h": {"trace": "1", "bytes": "\ufffd"}},
        {"n": 2, "id": f"{name}/1/1", "at": "2026-01-01T00:00:00Z", "by": None, "p": 1, "o": 1, "h": None},
    ]  # fmt: skip
    assert ended.state == "FINISHED"
    assert topics.group_offsets("lag-of-shop", name) == {0: 0, 1: 2}


def test_a_topic_that_is_written_to_all_the_time_can_be_drained(make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(name)
    topics.produce(name, [Record(at(n)) for n in range(3)])
    job = make_job(f"""\
sources:
  events: {{kafka: {{topic: {name}, servers: SERVERS}}, schema: {{t: timestamp(s)}}, event_time: t}}
operators:
  per_minute: {{type: window, input: events, window: {{tumbling: 1m}}, aggregate: {{n: count()}}}}
sinks:
  out: {{input: per_minute, files: {{path: out, format: jsonl}}}}
""")
    with written_to(topics, name, at(90)):
        counts = job.drain().total.operators["per_minute"]
    assert counts.late == 0
    assert sum(row["n"] for row in job.rows("out")) == counts.rows_in < topics.end_offsets(name, committed=True)[0]


@contextmanager
def written_to(topics: Topics, topic: str, value: bytes) -> Iterator[None]:
    """One record after the other, for as long as this is held."""
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            topics.produce(topic, [Record(value)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        enough.set()
        writer.join()


POISON = (b"", b"\xff\xfe\x00", b"{", b'{"n": "x"}', b"[1]", b"null", None, b'{"n": 1} {"n": 2}', b"\x00" * 1000)


def test_poison_never_stops_a_job_and_its_bytes_are_kept(make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(name)
    topics.produce(name, [Record(value) for value in POISON] + [Record(b'{"n": 7}')])
    job = make_job(f"""\
sources:
  events: {{kafka: {{topic: {name}, servers: SERVERS}}, schema: {{n: int}}}}
sinks:
  out: {{input: events, files: {{path: out, format: jsonl}}}}
  bad: {{input: events.errors, files: {{path: bad, format: jsonl}}}}
""")
    job.drain()
    assert job.rows("out") == [{"n": 7}]
    bad = {row["_offset"]: row for row in job.rows("bad")}
    kept = [None if bad[i]["_raw"] is None else base64.b64decode(bad[i]["_raw"]) for i in range(len(POISON))]
    assert kept == list(POISON)
    assert bad[1]["_error_code"] == "invalid_utf8"
    assert bad[6]["_error_code"] == "missing_value"
    assert bad[3]["_error_code"] == "wrong_type"


def test_a_payload_may_have_the_names_that_records_have(make_job: MakeJob, topics: Topics, name: str) -> None:
    columns = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
    row = dict.fromkeys(columns, "mine")
    topics.create(name)
    topics.produce(name, [Record(json.dumps(row).encode(), b"k"), Record(b"{")])
    schema = ", ".join(f"{column}: string" for column in columns)
    job = make_job(f"""\
sources:
  events: {{kafka: {{topic: {name}, servers: SERVERS}}, schema: {{{schema}}}, key: key}}
operators:
  per_key: {{type: aggregate, input: events, key: [key, topic], aggregate: {{offset: max(offset)}}}}
sinks:
  out: {{input: events, files: {{path: out, format: jsonl}}}}
  totals: {{input: per_key, files: {{path: totals, format: jsonl}}}}
  bad: {{input: events.errors, files: {{path: bad, format: jsonl}}}}
""")
    job.drain()
    assert job.rows("out") == [row]
    assert job.rows("totals") == [{"key": "mine", "topic": "mine", "offset": "mine"}]
    assert [(bad["_offset"], bad["_key"]) for bad in job.rows("bad")] == [(1, None)]


@pytest.mark.parametrize(
    ("format_", "value", "expected"),
    [("raw", b"\xff\x00", "/wA="), ("raw", None, None), ("text", b"h\xc3\xa9", "hé")],
    ids=["raw", "tombstone", "text"],
)
def test_other_formats(
    format_: str, value: bytes | None, expected: str | None, make_job: MakeJob, topics: Topics, name: str
) -> None:
    topics.create(name)
    topics.produce(name, [Record(value, b"k")])
    job = make_job(f"""\
sources:
  events: {{kafka: {{topic: {name}, servers: SERVERS}}, format: {format_}}}
sinks:
  out: {{input: events, files: {{path: out, format: jsonl}}}}
""")
    job.drain()
    assert job.rows("out") == [{"value": expected}]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", [0, 1, 2, 10, 11]),
        ("{timestamp: '2026-01-01T00:00:01Z'}", [1, 2, 11]),
        ("{offsets: {TOPIC: {0: 2}}}", [2, 10, 11]),
    ],
    ids=["earliest", "timestamp", "offsets"],
)
def test_start_positions(start: str, expected: list[int], make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(name, 2)
    topics.produce(name, [Record(b'{"n": %d}' % n, None, 0, _2026 + 1000 * n) for n in range(3)])
    topics.produce(name, [Record(b'{"n": %d}' % (10 + n), None, 1, _2026 + 1000 * n) for n in range(2)])
    options = f"topic: {name}, servers: SERVERS, start: {start.replace('TOPIC', name)}"
    job = make_job(f"sources:\n  events: {{kafka: {{{options}}}, schema: {{n: int}}}}" + SEEN)
    job.drain()
    assert sorted(row["n"] for row in job.rows("out")) == expected


def test_from_latest_and_a_new_partition_with_its_own_watermark(make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(name, 2)
    topics.produce(name, [Record(at(1, n=-1))])
    job = make_job(f"""\
sources:
  events:
    kafka: {{topic: {name}, servers: SERVERS, start: latest, properties: {{metadata.max.age.ms: "500"}}}}
    schema: {{n: int, t: timestamp(s)}}
    event_time: t
    watermark: {{delay: 0s, idle_timeout: 10m}}
operators:
  per_minute: {{type: window, input: events, window: {{tumbling: 1m}}, aggregate: {{events: count()}}}}
sinks:
  seen: {{input: events, files: {{path: seen, format: jsonl}}}}
  out: {{input: per_minute, files: {{path: out, format: jsonl}}}}
""")
    with job.running() as running:
        wait_until(lambda: len(topics.end_offsets(name, committed=True)) == 2 and running.messages)
        produce_until_read(topics, name, running)
        topics.produce(name, [Record(at(60, n=1), None, 0), Record(at(61, n=1), None, 1)])
        wait_until(lambda: has_closed(job, 0))
        topics.add_partitions(name, 3)
        topics.produce(name, [Record(at(62, n=2), None, 2)])
        wait_until(lambda: any(row["n"] == 2 for row in job.rows("seen")), 60)
        # The third partition now holds the watermark, though both others are beyond the minute.
        topics.produce(name, [Record(at(500, n=3), None, 0), Record(at(500, n=4), None, 1)])
        wait_until(lambda: {3, 4} <= {row["n"] for row in job.rows("seen")})
        statuses = {status.partition: status.max_event_time for status in running.status("events").partitions}
        assert sorted(statuses) == [0, 1, 2]
        assert not has_closed(job, 60)
        topics.produce(name, [Record(at(300, n=5), None, 2)])
        wait_until(lambda: has_closed(job, 60))
    assert running.failure is None
    assert -1 not in {row["n"] for row in job.rows("seen")}


def produce_until_read(topics: Topics, name: str, running: Any) -> None:
    """`latest` is the moment at which Spark first looks, which nobody outside can see: so send until one is read."""

    def read() -> bool:
        topics.produce(name, [Record(at(30, n=0), None, 0)])
        return bool(running.job.rows("seen"))

    wait_until(read, 60, interval=0.2)


def has_closed(job: KafkaJob, second: int) -> bool:
    closed = {row["window_start"] for row in job.rows("out")}
    return f"1970-01-01T00:0{second // 60}:00Z" in closed


def test_a_busy_partition_does_not_keep_a_quiet_one_from_being_idle(
    make_job: MakeJob, topics: Topics, name: str
) -> None:
    topics.create(name, 2)
    job = make_job(f"""\
sources:
  events:
    kafka: {{topic: {name}, servers: SERVERS}}
    schema: {{n: int, t: timestamp(s)}}
    event_time: t
    watermark: {{delay: 0s, idle_timeout: 2s}}
operators:
  per_minute: {{type: window, input: events, window: {{tumbling: 1m}}, aggregate: {{events: count()}}}}
sinks:
  out: {{input: per_minute, files: {{path: out, format: jsonl}}}}
""")
    with job.running() as running:
        second = iter(range(100_000))

        def closed() -> bool:
            topics.produce(name, [Record(at(next(second), n=1))])
            return bool(job.rows("out")) or running.failure is not None

        wait_until(closed, 60, interval=0.0)
    assert running.failure is None
    assert min(row["window_start"] for row in job.rows("out")) == "1970-01-01T00:00:00Z"


def test_several_topics_are_numbered_through(make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(f"{name}-a", 1)
    topics.create(f"{name}-b", 2)
    topics.produce(f"{name}-a", [Record(b'{"n": 1}')])
    topics.produce(f"{name}-b", [Record(b'{"n": 2}', None, 0), Record(b'{"n": 3}', None, 1)])
    source = f"sources:\n  events: {{kafka: {{topics: [{name}-a, {name}-b], servers: SERVERS}}, schema: {{n: int}}}}"
    job = make_job(source + SEEN)
    job.drain()
    assert sorted((row["n"], row["p"]) for row in job.rows("out")) == [(1, 0), (2, 1), (3, 3)]


COPY = """\
sources:
  events: {kafka: {topic: TOPIC, servers: SERVERS}, schema: {n: int}}
sinks:
  out: {input: events, files: {path: out, format: jsonl}}
"""


def test_no_such_topic(make_job: MakeJob, name: str) -> None:
    with make_job(COPY.replace("TOPIC", name)).running() as running:
        failure = running.wait_for_failure()
    assert (failure.code, failure.domain) == ("source_unreadable", "user")
    assert f"has no topic {name}" in failure.message


def test_a_deleted_topic_is_a_failure(make_job: MakeJob, topics: Topics, name: str) -> None:
    """Spark's client hopes for a topic that goes away in the middle of a call three times as long as it may take."""
    topics.create(name)
    topics.produce(name, [Record(b'{"n": 1}')])
    hasty = 'servers: SERVERS, properties: {default.api.timeout.ms: "5000", request.timeout.ms: "4000"}'
    with make_job(COPY.replace("TOPIC", name).replace("servers: SERVERS", hasty)).running() as running:
        running.wait_for_rows("out", 1)
        topics.delete(name)
        failure = running.wait_for_failure()
    assert (failure.code, failure.domain) == ("source_unreadable", "user"), failure
    assert name in failure.message
    assert failure.hint


def test_passed_retention_is_a_failure(make_job: MakeJob, topics: Topics, name: str) -> None:
    topics.create(name)
    topics.produce(name, [Record(b'{"n": 1}')])
    job = make_job(COPY.replace("TOPIC", name))
    with job.running() as running:
        running.wait_for_rows("out", 1)
    topics.produce(name, [Record(b'{"n": 2}'), Record(b'{"n": 3}')])
    topics.delete_records(name, {0: 2})
    with job.running() as running:
        failure = running.wait_for_failure()
    assert (failure.code, failure.domain) == ("source_unreadable", "user"), failure
    assert "--fresh" in (failure.hint or "")
