"""What all tests share: one Spark session, made when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from support import quick_java
from support.measured import measurements

from tidemark import jars

_WEIGHTS = {"slow": 8, "faults": 4, "semantics": 2, "spark": 1}

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.testing.kafka_broker import KafkaBroker
    from tidemark.testing.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Shared by the whole run: leave no query running and no setting changed."""
    from tidemark.data_plane.session import create_session

    session = create_session(
        "tidemark-tests",
        driver_memory="1g",
        parallelism=2,
        jars=jars.require(jars.CONNECTOR),
        # A name that has to be quoted on the way to Java.
        temporary=tmp_path_factory.mktemp('the "temporary" files'),
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """One broker for the whole run; tests use topics of their own."""
    from tidemark.testing.kafka_broker import KafkaBroker

    with KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Shared by the whole run: a test that stops it starts it again, and each takes a database of its own."""
    from tidemark.testing.postgres_server import running_postgres

    with running_postgres(durable=False) as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The address of a new, empty database."""
    return postgres.create_database(f"test_{uuid4().hex}")


def pytest_configure() -> None:
    quick_java.choose()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take long come first, so that all workers end at about the same time."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("timed") and "faults" not in item.path.parts:
            raise pytest.UsageError(f"{item.nodeid}: `make test` looks for timed tests in tests/faults alone")
    longest = {file: max(map(_weight, of_file)) for file, of_file in groupby(items, lambda item: item.path)}
    items.sort(key=lambda item: -longest[item.path])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in measurements(terminalreporter):
        terminalreporter.write_line(line)


def _weight(item: pytest.Item) -> int:
    return sum(factor for name, factor in _WEIGHTS.items() if item.get_closest_marker(name))
