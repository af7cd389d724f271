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
from tidemark.testing.conformance import CHECKS
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics
from tidemark.testing.sink_target import Target

READERS = {"json": read_json_topic, "csv": read_csv_topic}
FORMS: tuple[dict[str, Any], ...] = ({"format": "json", "key": ("id",)}, {"format": "csv", "key": ()})


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["format"])
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
