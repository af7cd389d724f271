"""What makes kept state unfit, and what leaves it alone."""

from __future__ import annotations

import pytest
from support.jobs import ORDERS

from tidemark.compiler.compile import compile_job

JOB = (
    ORDERS
    + """\
operators:
  f: {type: filter, input: orders, where: n > 0}
  d: {type: dedup, input: f, by: [id], within: 1m}
  w: {type: window, input: d, key: [store], window: {tumbling: 1m}, aggregate: {total: sum(amount)}}
sinks:
  o: {input: w, console: {}}
"""
)


def signature(text: str) -> str:
    (query,) = compile_job(text).plan.queries
    return query.state_signature


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n > 0", "n > 5"),
        ("console: {}}", "console: {}}\n  p: {input: w, console: {}}"),
        ("console: {}}", "console: {}}\n  p: {input: w.late, console: {}}"),
        ("name: orders", "name: other\nparallelism: 7"),
        ("path: in", "path: elsewhere"),
        ("{id: string,", "{extra: string, id: string,"),
        ("event_time: ts", "event_time: ts\n    watermark: {delay: 9s}"),
    ],
)
def test_state_is_kept(old: str, new: str) -> None:
    assert old in JOB
    assert signature(JOB.replace(old, new)) == signature(JOB)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum(amount)", "avg(amount)"),
        ("sum(amount)", "sum(amount + 1)"),
        ("total: sum", "sum: sum"),
        ("{total:", "{c: count(), total:"),
        ("key: [store]", "key: [store, n]"),
        ("tumbling: 1m", "tumbling: 2m"),
        ("tumbling: 1m", "tumbling: 1m, offset: 1s"),
        ("aggregate: {total: sum(amount)}", "aggregate: {total: sum(amount)}, emit: on_update"),
        ("within: 1m", "within: 2m"),
        ("by: [id]", "by: [store]"),
        ("{id: string", "{id: long"),
        ("store: string", "store: int"),
        ("amount: double", "amount: float"),
        ("  w: ", "  v: "),
        ("  d: {type: dedup, input: f, by: [id], within: 1m}\n", ""),
        ("format: jsonl}", "format: jsonl, partition: n, partitions: 2}"),
        ("orders", "others"),
    ],
)
def test_state_is_not_kept(old: str, new: str) -> None:
    changed = JOB.replace(old, new)
    assert changed != JOB
    if old == "  w: ":
        changed = changed.replace("input: w", "input: v")
    if old.startswith("  d: "):
        changed = changed.replace("input: d", "input: f")
    assert signature(changed) != signature(JOB)
