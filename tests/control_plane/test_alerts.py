"""Each alert fires when it should and not before; the rules for Prometheus name metrics that exist."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from control_plane.jobs.test_decide import JOB
from control_plane.serving import job_text
from ruamel.yaml import YAML
from support.repository import ROOT

from tidemark.compiler.compile import compile_job
from tidemark.control_plane.alerts import CHECKS, Facts, alerts
from tidemark.control_plane.metrics import COUNTERS, GAUGES, EpochMetrics
from tidemark.protocol.messages import Accounting, PartitionStatus, SourceCounts, SourceStatus
from tidemark.protocol.status import DriverStatus, QueryStatus

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLAN = compile_job(job_text()).plan
RULES = ROOT / "monitoring" / "tidemark.rules.yaml"


def facts(restarts: int = 0, **fields: Any) -> Facts:
    return Facts(replace(JOB, since=NOW), PLAN.sources, DriverStatus(state="RUNNING", **fields), restarts, NOW)


def source(behind: int, idle: bool = False) -> dict[str, SourceStatus]:
    mark = NOW - timedelta(seconds=behind)
    part = PartitionStatus(partition=0, watermark=mark, max_event_time=mark, idle=idle)
    return {"orders": SourceStatus(watermark=mark, idle=False, partitions=(part,))}


def query(minutes: float, lag: int) -> dict[str, Any]:
    at = NOW - timedelta(minutes=minutes)
    return {
        "queries": (QueryStatus(id="per_min", epoch=1, watermark=None, committed_at=at),),
        "lag_events": lag,
    }


def counts(events: int, errors: int) -> dict[str, Any]:
    counted = SourceCounts(events_in=events, accepted=events - errors, errors=errors)
    return {"total": Accounting(sources={"orders": counted})}


CASES: list[tuple[Facts, list[str]]] = [
    (facts(), []),
    (facts(sources=source(behind=94)), []),
    (facts(sources=source(behind=96)), ["watermark_lag"]),
    (facts(sources=source(behind=5, idle=True)), ["partition_idle"]),
    (facts(**query(minutes=6, lag=10)), ["no_committed_epoch"]),
    (facts(**query(minutes=6, lag=0)), []),
    (facts(**query(minutes=4, lag=10)), []),
    (facts(restarts=3), ["restarts"]),
    (facts(restarts=2), []),
    (facts(**counts(100, 6)), ["error_share"]),
    (facts(**counts(100, 5)), []),
]


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_an_alert_fires_when_it_should(given: Facts, expected: list[str]) -> None:
    assert [alert.name for alert in alerts(given)] == expected


def test_every_check_has_a_case_that_fires() -> None:
    assert len({name for _, expected in CASES for name in expected}) == len(CHECKS)


def rules() -> list[dict[str, Any]]:
    loaded = YAML(typ="safe").load(RULES.read_text())
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def test_rules_use_metrics_that_exist() -> None:
    histograms = [family.name for family in EpochMetrics().registry.collect()]
    known = {*GAUGES, *(f"{name}_total" for name in COUNTERS)}
    known |= {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    for rule in rules():
        used = set(re.findall(r"\btidemark_\w+", rule["expr"]))
        assert used, rule
        assert used <= known, used - known


def test_there_is_a_rule_for_every_alert() -> None:
    names = {name for _, expected in CASES for name in expected}
    assert {rule["labels"]["tidemark_alert"] for rule in rules()} == names
    assert all(rule["annotations"]["summary"] for rule in rules())
