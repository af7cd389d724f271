"""The checks of `make chaos` find what they are for: each is shown one wrong row. No process is started."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from faults.chaos import events
from faults.chaos.report import Report, Round, percentile
from faults.chaos.session import schedule
from faults.chaos.strikes import FAULTS, refusers_in
from faults.chaos.witness import Witness

from tidemark.data_plane.failpoints import POINTS

TOTALS = events.Totals()
EVENTS = [{"key": "k00", "seq": seq, "amount": events.amount("k00", seq)} for seq in range(3)]
WINDOW = {"key": "k00", "window_start": "2026-01-01T00:00:05Z", "events": 2, "total": 9}


def total(count: int, **changed: int) -> dict[str, Any]:
    return {"key": "k00", "events": count, "total": TOTALS.of("k00", count), "last_seq": count - 1, **changed}


def shown(kind: str, *rows: dict[str, Any]) -> Witness:
    witness = Witness("here")
    for row in rows:
        witness.see(kind, row)
    return witness


def test_what_is_right_is_not_complained_about() -> None:
    witness = shown("log", *EVENTS)
    for kind, rows in (("totals", [total(2), total(7)]), ("windows", [WINDOW]), ("late", EVENTS)):
        for row in rows:
            witness.see(kind, row)
    for attempt in (1, 1, 3):
        witness.see_attempt("out", attempt)
    assert (witness.problems, witness.repeated) == ([], 0)
    assert (witness.next_seq, witness.counted) == ({"k00": 3}, {"k00": 7})
    assert witness.windows == {("k00", 1_767_225_605_000): (2, 9)}


@pytest.mark.parametrize(
    ("kind", "rows", "repeated"),
    [
        ("log", [EVENTS[0], EVENTS[2]], 0),
        ("log", [EVENTS[0], EVENTS[1], EVENTS[1]], 1),
        ("log", [EVENTS[1], EVENTS[0]], 1),
        ("log", [{**EVENTS[0], "amount": -1}], 0),
        ("totals", [total(3), total(3)], 1),
        ("totals", [total(3), total(2)], 1),
        ("totals", [total(3, total=1)], 0),
        ("totals", [total(3, last_seq=1)], 0),
        ("windows", [WINDOW, WINDOW], 1),
        ("late", [EVENTS[0], EVENTS[0]], 1),
    ],
    ids=["gap", "twice", "order", "amount", "again", "back", "sum", "last", "window", "late"],
)
def test_what_is_wrong_is_found(kind: str, rows: list[dict[str, Any]], repeated: int) -> None:
    witness = shown(kind, *rows)
    assert witness.problems
    assert witness.repeated == repeated


def test_an_older_attempt_is_found() -> None:
    witness = Witness("here")
    for attempt in (2, 1):
        witness.see_attempt("out", attempt)
    assert witness.problems == ["here: out: attempt 1 wrote after attempt 2"]


def test_a_stream_is_the_same_for_its_seed_and_each_key_is_in_order() -> None:
    sent = list(islice(events.stream(7, 0), 3000))
    assert sent == list(islice(events.stream(7, 0), 3000))
    assert sent != list(islice(events.stream(8, 0), 3000))
    assert any(record.key is None for record in sent)
    for key in events.KEYS:
        own = [record for record in sent if record.key == key]
        assert [record.seq for record in own] == list(range(len(own)))
        assert [record.time_ms for record in own] == sorted({record.time_ms for record in own})
        assert len({record.partition for record in own}) == 1


def test_a_schedule_is_the_same_for_its_seed_and_has_every_fault() -> None:
    assert schedule(3, 50) == schedule(3, 50) != schedule(4, 50)
    assert set(schedule(3, len(FAULTS))) == set(FAULTS)
    assert {f"failpoint {point}" for point in POINTS} <= set(FAULTS)


def test_a_refusal_counts_only_where_a_ledger_gave_it() -> None:
    told = (
        'File "connectors/{}/ledger.py", line 82, in check_turn\n  raise Fenced\ntidemark.errors.Fenced: attempt 2 of\n'
    )
    kafka, postgres = (told.format(name) for name in ("kafka", "postgres"))
    assert refusers_in(f"connectors/kafka/ledger.py\n{postgres}") == {"postgres"}
    assert refusers_in(f"{kafka}{postgres}") == {"kafka", "postgres"}
    assert refusers_in(kafka.replace("ledger.py", "sink.py")) == refusers_in("") == set()


def round_of(seconds: float, *problems: str) -> Round:
    return Round(1, "kill JVM", "seen", 2, seconds, seconds, 1.0, problems)


def test_a_report_passes_only_when_nothing_is_wrong() -> None:
    assert Report(1, 2, rounds=[round_of(3), round_of(30)]).passed
    assert not Report(1, 2, rounds=[round_of(3), round_of(30.1)]).passed
    assert not Report(1, 2, rounds=[round_of(3)]).passed
    assert not Report(1, 1, rounds=[round_of(3, "a row came twice")]).passed
    for wrong in ({"lost": 1}, {"duplicated": 1}, {"problems": ["stuck"]}):
        assert not Report(1, 1, rounds=[round_of(3)], **wrong).passed


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(n) for n in range(1, 21)]
    assert [percentile(values, share) for share in (0.5, 0.95, 1.0)] == [10.0, 19.0, 20.0]
