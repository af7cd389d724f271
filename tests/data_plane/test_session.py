"""What a session is told beyond the common settings, by where its tasks run."""

from __future__ import annotations

import pytest

from tidemark.data_plane.session import settings_of
from tidemark.errors import EnvironmentFault

LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def test_a_driver_that_runs_its_own_tasks_is_not_reachable_from_elsewhere() -> None:
    assert dict(settings_of("local[*,4]", 2)) == LOOPBACK


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "spark://127.0.0.1:7077,127.0.0.2:7077"])
def test_executors_of_a_standalone_cluster_reach_the_driver_where_the_master_is_reached(master: str) -> None:
    assert dict(settings_of(master, 3)) == {**LOOPBACK, "spark.cores.max": "3"}


def test_other_cluster_managers_know_themselves() -> None:
    assert settings_of("yarn", 2) == ()


def test_a_master_without_an_address_is_named() -> None:
    with pytest.raises(EnvironmentFault, match=r"the Spark master nowhere\.invalid cannot be reached"):
        settings_of("spark://nowhere.invalid:7077", 2)
