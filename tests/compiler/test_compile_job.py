"""The compiler as a whole: the job of the contract, its speed, and that it loads no Spark."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from support.jobs import ORDERS

from tidemark.compiler.compile import compile_job
from tidemark.compiler.definition.case import AdvanceTime, AdvanceWatermark, Crash, EndEpoch, Event
from tidemark.errors import DefinitionError

ORDERS_PER_MINUTE = """\
tidemark: 1
name: orders-per-minute
mode: microbatch            # microbatch (default) | realtime | backfill
parallelism: 2              # key groups of every stateful operator
epoch: {interval: 0ms, max_events: 500000}       # trigger and admission per epoch
sources:
  orders:
    kafka: {topic: orders, servers: $KAFKA, start: earliest}
    format: json            # of the record's value; a files source has its format inside
    schema: {order_id: string, store: string, user: string, amount: double, ts: timestamp}
    event_id: order_id
    key: store
    event_time: ts
    watermark: {delay: 5s, idle_timeout: 30s, max_future: 1h}
operators:
  valid:   {type: filter, input: orders, where: "amount > 0"}
  per_min:
    type: window
    input: valid
    key: [store]
    window: {tumbling: 1m}
    aggregate: {orders: count(), revenue: sum(amount), buyers: approx_distinct(user), p99: "approx_percentile(amount, 0.99)"}
sinks:
  out:  {input: per_min, postgres: {url: $PG, table: orders_per_minute, key: [store, window_start]}}
  late: {input: per_min.late, files: {path: out/late, format: jsonl}}
  bad:  {input: orders.errors, files: {path: out/bad, format: jsonl}}
tests:
  - name: two orders, one late
    input:
      orders:
        - {order_id: a, store: s1, user: u, amount: 2.0, ts: "2026-01-01T00:00:10Z"}
        - {advance_watermark: "2026-01-01T00:20:00Z"}
        - {order_id: b, store: s1, user: u, amount: 3.0, ts: "2026-01-01T00:00:20Z"}
    expect:
      out:  [{store: s1, window_start: "2026-01-01T00:00:00Z", orders: 1, revenue: 2.0}]
      late: [{order_id: b}]
"""  # noqa: E501  # as the contract writes it


def test_the_job_of_the_contract_compiles() -> None:
    compiled = compile_job(ORDERS_PER_MINUTE)
    assert compiled.warnings == ()
    (query,) = compiled.plan.queries
    assert (query.operators, query.sinks) == (("valid", "per_min"), ("out", "late", "bad"))
    assert compiled.plan.sinks["out"].options["url"] == "$PG"
    assert compiled.plan.sources["orders"].options["servers"] == "$KAFKA"


def test_all_diagnostics_are_in_the_error() -> None:
    with pytest.raises(DefinitionError) as caught:
        compile_job(ORDERS.replace("double", "doubel").replace("name: orders", "name: Or"))
    assert [found.code for found in caught.value.diagnostics] == ["missing_field", "bad_id", "bad_type"]


def test_tests_are_typed_items() -> None:
    controls_text = "".join(f"        - {{{item}}}\n" for item in ("crash: true", "epoch: true", "advance_time: 30s"))
    last_event = "        - {order_id: b,"
    text = ORDERS_PER_MINUTE.replace(last_event, controls_text + last_event)
    (case,) = compile_job(text).definition.tests
    first, *controls, last = case.items("orders")
    assert controls == [AdvanceWatermark("2026-01-01T00:20:00Z"), Crash(), EndEpoch(), AdvanceTime("30s")]
    assert isinstance(first, Event)
    assert isinstance(last, Event)
    assert last.values["order_id"] == "b"
    assert case.items("nobody") == ()


def test_a_column_called_like_a_control_item_is_an_event_beside_others() -> None:
    head = ORDERS.replace("{id: string", "{epoch: boolean, id: string")
    text = head + (
        "sinks: {o: {input: orders, console: {}}}\n"
        "tests: [{name: t, input: {orders: [{epoch: true, id: a}, {epoch: true}]}, expect: {}}]\n"
    )
    (case,) = compile_job(text).definition.tests
    assert case.items("orders") == (Event({"epoch": True, "id": "a"}), EndEpoch())


def test_compiling_is_fast_and_loads_neither_spark_nor_other_heavy_things() -> None:
    script = (
        "import sys, time; began = time.process_time()\n"
        "from tidemark.compiler.compile import compile_job\n"
        "compile_job(sys.stdin.read()); took = time.process_time() - began\n"
        "assert not {'pyspark', 'py4j', 'pyarrow', 'pandas', 'sqlite3', 'httpx'} & set(sys.modules)\n"
        "print(took)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", script],
                input=ORDERS_PER_MINUTE,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(4)
    ]
    assert min(times) < 0.6, times


def test_a_job_of_many_operators_compiles_in_seconds() -> None:
    lines = ["operators:"]
    lines += [f"  f{n}: {{type: filter, input: {f'f{n - 1}' if n else 'orders'}, where: n > {n}}}" for n in range(400)]
    began = time.monotonic()
    compiled = compile_job(ORDERS + "\n".join(lines) + "\nsinks: {o: {input: f399, console: {}}}\n")
    assert len(compiled.plan.operators) == 400
    assert time.monotonic() - began < 10
