"""What `explain` tells people and programs."""

from __future__ import annotations

import json

from support.jobs import compiled

from tidemark.compiler.plan.explain import explain_json, explain_text

REST = """\
operators:
  paid: {type: filter, input: orders, where: amount > 0}
  per_minute: {type: window, input: paid, key: [store], window: {sliding: 10m, every: 90s}, aggregate: {c: count()}}
  totals: {type: aggregate, input: paid, key: {odd: n % 2}, aggregate: {top: "approx_top_k(store, 3)"}}
  words: {type: flat_map, input: orders.errors, each: "split(cast(_raw as string), ' ')", as: word}
sinks:
  a: {input: per_minute, sqlite: {path: x.db, table: t, key: [store, window_start]}}
  b: {input: totals, console: {}}
  bad: {input: words, files: {path: bad, format: jsonl}}
"""


def test_text_follows_an_event_from_source_to_sinks() -> None:
    text = explain_text(compiled(REST).plan)
    order = ["query per_minute", "source orders", "filter paid", "window per_minute", "sink a", "query totals"]
    places = [text.index(step) for step in order]
    assert places == sorted(places)
    for fact in (
        "2 queries",
        "shared: paid is read by the queries per_minute, totals",
        "sliding window of 10m every 90s; key: store",
        "emits when the watermark reaches the end",
        "minus 5s",
        "idle after 30s",
        "guarantee: exactly once",
        "guarantee: none",
        "counted only, not kept: per_minute.late",
        "flat_map words (side port)",
        "top = approx_top_k(",
        "store string, window_start timestamp, window_end timestamp, c long",
    ):
        assert fact in text
    assert "orders.errors" not in text.split("counted only")[1].splitlines()[0]


def test_json_says_the_same() -> None:
    answer = explain_json(compiled(REST).plan)
    assert json.loads(json.dumps(answer)) == answer
    assert answer["shared"] == {"orders": ["per_minute", "totals"], "paid": ["per_minute", "totals"]}
    first, second = answer["queries"]
    assert first["side_ports"] == {"orders.errors": True, "per_minute.late": False, "a.errors": False}
    assert second["side_ports"] == {}
    assert [sink["guarantee"] for sink in (*first["sinks"], *second["sinks"])] == [
        "exactly once",
        "exactly once",
        "none",
    ]


def test_references_stay_unresolved() -> None:
    plan = compiled("sinks: {o: {input: orders, sqlite: {path: $SECRET_PATH, table: t}}}").plan
    assert "$SECRET_PATH" in json.dumps(explain_json(plan))
