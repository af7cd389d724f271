"""Topics of the shared broker, a fresh name for each test."""

from __future__ import annotations

import re

import pytest

from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics


@pytest.fixture
def topics(kafka_broker: KafkaBroker) -> Topics:
    return Topics(kafka_broker.servers)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Fit for a topic, and different for every test."""
    return re.sub(r"[^a-zA-Z0-9]+", "-", request.node.nodeid.partition("::")[2])[:120].strip("-")
