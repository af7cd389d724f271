"""The workload of the recovery tests says something: every sink gets rows, and the accounting adds up."""

from __future__ import annotations

import pytest
from faults import workload
from faults.undisturbed import Undisturbed

pytestmark = [pytest.mark.faults, pytest.mark.timed, pytest.mark.spark, pytest.mark.slow]


def test_every_sink_holds_what_the_accounting_says(undisturbed: Undisturbed) -> None:
    held = {sink: len(rows) for sink, rows in undisturbed.contents.items()}
    assert held == {sink: counts["rows"] for sink, counts in undisturbed.summary["sinks"].items()}
    assert all(held.values()), held


def test_the_accounting_adds_up(undisturbed: Undisturbed) -> None:
    sources, operators = undisturbed.summary["sources"], undisturbed.summary["operators"]
    for counts in sources.values():
        assert counts["in"] == counts["accepted"] + counts["errors"]
    for name in ("paid", "once"):
        counts = operators[name]
        withheld = counts["filtered"] + counts["duplicates"] + counts["late"]
        assert counts["rows_in"] == counts["rows_out"] + withheld
    assert sources["orders"]["errors"] == sum(map(len, workload.BROKEN.values()))
    assert operators["paid"]["filtered"]
    assert operators["once"]["duplicates"]
    assert operators["per_minute"]["rows_in"] == operators["once"]["rows_out"] + sources["clicks"]["accepted"]


def test_each_event_is_in_a_result_or_late(undisturbed: Undisturbed) -> None:
    operators, totals = undisturbed.summary["operators"], workload.totals(undisturbed.contents)
    assert operators["per_minute"]["rows_in"] == totals["out"] + operators["per_minute"]["late"]
    assert operators["visits"]["rows_in"] == totals["visits_log"] + operators["visits"]["late"]
