"""What a changed definition means for the state, query by query and operator by operator."""

from __future__ import annotations

import pytest

from tidemark.compiler.compile import compile_job
from tidemark.control_plane.jobs.replay import Replay
from tidemark.control_plane.jobs.upgrade import QueryVerdict, compare, impossible, lost, rebuilt

REPLAY = Replay(120)
JOB = """\
tidemark: 1
name: shop
sources:
  a: {generator: {rate: 1, partitions: 2, columns: {n: n}}, schema: {n: long}}
operators:
  some: {type: filter, input: a, where: "n > 1"}
  once: {type: dedup, input: some, by: [n], within: 1m}
  sums: {type: window, input: once, key: [n], window: {tumbling: 1m}, aggregate: {c: count()}}
  mins: {type: window, input: some, key: [n], window: {tumbling: 1m}, aggregate: {w: count()}}
  live: {type: aggregate, input: some, key: [n], aggregate: {l: count()}}
sinks:
  out: {input: sums, console: {}}
  now: {input: live, console: {}}
  then: {input: mins, console: {}}
"""


def verdicts(*changes: tuple[str, str], replay: Replay = REPLAY) -> dict[str, QueryVerdict]:
    changed = JOB
    for old, new in changes:
        assert old in changed
        changed = changed.replace(old, new)
    before, after = compile_job(JOB).plan, compile_job(changed).plan
    return {query.id: query for query in compare(before, after, lambda plan, query: replay)}


def fates(query: QueryVerdict) -> dict[str, str]:
    return {operator.id: operator.verdict for operator in query.operators}


def test_a_changed_filter_keeps_everything() -> None:
    found = verdicts(("n > 1", "n > 2"))
    assert {query.verdict for query in found.values()} == {"kept"}
    assert fates(found["sums"]) == {"once": "kept", "sums": "kept"}


def test_a_new_sink_keeps_everything() -> None:
    found = verdicts(("  now:", "  more: {input: sums, console: {}}\n  now:"))
    assert {query.verdict for query in found.values()} == {"kept"}


def test_a_new_aggregate_rebuilds_a_window_and_names_it() -> None:
    found = verdicts(("aggregate: {w: count()}", "aggregate: {w: count(), s: sum(n)}"))
    assert {id_: query.verdict for id_, query in found.items()} == {"sums": "kept", "live": "kept", "mins": "rebuilt"}
    assert "mins" in found["mins"].reason
    assert fates(found["mins"]) == {"mins": "rebuilt"}
    assert rebuilt(tuple(found.values())) == ("mins",)


def test_what_is_rebuilt_says_how_many_events_are_read_again() -> None:
    found = verdicts(("aggregate: {w: count()}", "aggregate: {w: count(), s: sum(n)}"))
    assert {id_: query.events for id_, query in found.items()} == {"sums": None, "live": None, "mins": 120}
    assert [operator.events for operator in found["mins"].operators] == [120]


def test_a_replay_that_cannot_be_done_is_no_rebuild() -> None:
    change = ("aggregate: {w: count()}", "aggregate: {w: count(), s: sum(n)}")
    found = verdicts(change, replay=Replay(None, "nobody remembers"))
    assert (found["mins"].verdict, found["mins"].events) == ("lost", None)
    assert found["mins"].reason == "it cannot be rebuilt: nobody remembers"


@pytest.mark.parametrize(
    ("query", "old", "new", "why"),
    [
        ("live", "aggregate: {l: count()}", "aggregate: {l: sum(n)}", "running aggregate"),
        ("sums", "aggregate: {c: count()}", "aggregate: {c: sum(n)}", "several stateful operators"),
        ("mins", "partitions: 2", "partitions: 3", "it reads other sources"),
    ],
)
def test_what_cannot_be_rebuilt_is_lost_and_says_why(query: str, old: str, new: str, why: str) -> None:
    found = verdicts((old, new))
    assert found[query].verdict == "lost"
    assert why in found[query].reason
    assert query in lost(tuple(found.values()))
    changed = compile_job(JOB.replace(old, new)).plan
    assert query in [each.id for each in impossible(tuple(found.values()), changed)]


def test_a_stateful_operator_that_goes_is_lost_and_the_rest_is_rebuilt() -> None:
    found = verdicts(("  once: {type: dedup, input: some, by: [n], within: 1m}\n", ""), ("input: once", "input: some"))
    assert found["sums"].verdict == "rebuilt"
    assert fates(found["sums"]) == {"sums": "rebuilt", "once": "lost"}
    assert list(lost(tuple(found.values()))) == ["once"]


def test_a_query_that_goes_is_lost_and_a_new_one_begins_empty() -> None:
    found = verdicts(("  live:", "  fresh:"), ("input: live", "input: fresh"))
    assert (found["live"].verdict, found["fresh"].verdict) == ("lost", "new")
    assert list(lost(tuple(found.values()))) == ["live"]
