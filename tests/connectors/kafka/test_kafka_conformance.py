"""The Kafka sink against every check of the kit, on a real broker."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from connectors.kafka.readers import read_csv_topic, read_json_topic
from pyspark.sql import SparkSession

from tidemark.connectors.kafka.sink import KafkaSink
from tidemark.testing.conformance import (
    CHECKS,
    epochs_are_written_once,
    every_type_is_kept_and_so_is_null,
    texts_stay_as_they_are,
)
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics
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
