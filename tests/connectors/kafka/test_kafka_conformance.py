"""The Kafka sink against every check of the kit, on a real broker."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from connectors.kafka.readers import read_csv_topic, read_json_topic
from pyspark.sql import SparkSession
from support.waiting import wait_until

from tidemark.connectors.kafka.sink import KafkaSink
from tidemark.testing.conformance import (
    CHECKS,
    epochs_are_written_once,
    every_type_is_kept_and_so_is_null,
    texts_stay_as_they_are,
)
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics
from tidemark.testing.refusal_conformance import REFUSAL_CHECKS, Row
from tidemark.testing.sink_target import Target

READERS = {"json": read_json_topic, "csv": read_csv_topic}
JSON: dict[str, Any] = {"format": "json", "key": ("id",)}
CSV: dict[str, Any] = {"format": "csv", "key": ()}
CHECKS_OF_VALUES = (epochs_are_written_once, texts_stay_as_they_are, every_type_is_kept_and_so_is_null)


# What depends on the format is checked for each, the rest once.
CASES = [(JSON, check) for check in CHECKS] + [(CSV, check) for check in CHECKS_OF_VALUES]


@pytest.mark.parametrize(("form", "check"), CASES, ids=lambda each: each.__name__ if callable(each) else each["format"])
def test_kafka_keeps_the_contract(
    form: dict[str, Any],
    check: Callable[[Target], None],
    spark: SparkSession,
    tmp_path: Path,
    kafka_broker: KafkaBroker,
    topics: Topics,
    name: str,
) -> None:
    options = {"servers": kafka_broker.servers, "topic": name, "namespace": name, **form}
    reader = functools.partial(READERS[form["format"]], topics, name)
    check(Target(KafkaSink, options, tmp_path, spark, reader))
    assert topics.end_offsets(name, committed=True) == topics.end_offsets(name, committed=False)


@pytest.mark.parametrize("check", REFUSAL_CHECKS, ids=lambda check: check.__name__)
def test_kafka_keeps_what_it_refuses(
    check: Callable[[Target, Row, str], None],
    spark: SparkSession,
    tmp_path: Path,
    kafka_broker: KafkaBroker,
    topics: Topics,
    name: str,
) -> None:
    topics.create(name, max_message_bytes="1000")
    options = {"servers": kafka_broker.servers, "topic": name, "namespace": name, **JSON}
    target = Target(KafkaSink, options, tmp_path, spark, functools.partial(read_json_topic, topics, name))
    check(target, ("x" * 5_000, 1), "too_large")
    # A reader may be told of the last commit a moment later.
    wait_until(lambda: topics.end_offsets(name, committed=True) == topics.end_offsets(name, committed=False))
