"""What a changed definition means for the state, query by query and operator by operator."""

from __future__ import annotations

from tidemark.compiler.compile import compile_job
from tidemark.control_plane.jobs.upgrade import QueryVerdict, compare, lost

JOB = """\
tidemark: 1
name: shop
sources:
  a: {generator: {rate: 1, partitions: 2, columns: {n: n}}, schema: {n: long}}
operators:
  some: {type: filter, input: a, where: "n > 1"}
  once: {type: dedup, input: some, by: [n], within: 1m}
  sums: {type: window, input: once, key: [n], window: {tumbling: 1m}, aggregate: {c: count()}}
  live: {type: aggregate, input: some, key: [n], aggregate: {c: count()}}
sinks:
  out: {input: sums, console: {}}
  now: {input: live, console: {}}
"""


def verdicts(*changes: tuple[str, str]) -> dict[str, QueryVerdict]:
    changed = JOB
    for old, new in changes:
        assert old in changed
        changed = changed.replace(old, new)
    return {query.id: query for query in compare(compile_job(JOB).plan, compile_job(changed).plan)}


def fates(query: QueryVerdict) -> dict[str, str]:
    return {operator.id: operator.verdict for operator in query.operators}


def test_a_changed_filter_keeps_everything() -> None:
    found = verdicts(("n > 1", "n > 2"))
    assert {query.verdict for query in found.values()} == {"kept"}
    assert fates(found["sums"]) == {"once": "kept", "sums": "kept"}


def test_a_new_sink_keeps_everything() -> None:
    found = verdicts(("  now:", "  more: {input: sums, console: {}}\n  now:"))
    assert {query.verdict for query in found.values()} == {"kept"}


def test_a_new_aggregate_rebuilds_its_query_and_names_the_operator() -> None:
    found = verdicts(
        (
            "window: {tumbling: 1m}, aggregate: {c: count()}",
            "window: {tumbling: 1m}, aggregate: {c: count(), s: sum(n)}",
        )
    )
    assert (found["sums"].verdict, found["live"].verdict) == ("rebuilt", "kept")
    assert "sums" in found["sums"].reason
    assert fates(found["sums"]) == {"once": "rebuilt", "sums": "rebuilt"}
    assert "did not change" in found["sums"].operators[0].reason


def test_other_sources_rebuild() -> None:
    found = verdicts(("partitions: 2", "partitions: 3"))
    assert {query.verdict for query in found.values()} == {"rebuilt"}
    assert found["live"].reason == "it reads other sources"


def test_a_stateful_operator_that_goes_is_lost() -> None:
    found = verdicts(("  once: {type: dedup, input: some, by: [n], within: 1m}\n", ""), ("input: once", "input: some"))
    assert found["sums"].verdict == "rebuilt"
    assert fates(found["sums"]) == {"sums": "rebuilt", "once": "lost"}
    assert list(lost(tuple(found.values()))) == ["once"]


def test_a_query_that_goes_is_lost_and_a_new_one_begins_empty() -> None:
    found = verdicts(("  live:", "  fresh:"), ("input: live", "input: fresh"))
    assert (found["live"].verdict, found["fresh"].verdict) == ("lost", "new")
    assert list(lost(tuple(found.values()))) == ["live"]
