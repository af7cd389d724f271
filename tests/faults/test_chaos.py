"""The short form of `make chaos`: one long job over a real broker and PostgreSQL, struck four times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faults.chaos.report import LIMIT_SECONDS
from faults.chaos.session import run_session

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
FAULTS = ["kill PostgreSQL", "failpoint between_sinks", "kill broker", "zombie in Kafka"]
SEED = 4


def test_each_result_is_there_once_whatever_is_killed(tmp_path: Path, report: Callable[[str], None]) -> None:
    found = run_session(FAULTS, SEED, tmp_path, report)
    assert found.found == []
    # A machine too busy to start a job in that time cannot recover one, so there a start sets the limit.
    assert found.p95 <= max(LIMIT_SECONDS, 2 * found.start_seconds)
    assert min(found.events, found.poison, found.late) > 0
