"""Which part of a graph becomes which query, and what the plan says about sources and sinks."""

from __future__ import annotations

import pytest
from support.jobs import ORDERS, compiled, job

from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan
from tidemark.schema import SYSTEM_COLUMNS

SYSTEM = [name for name, _ in SYSTEM_COLUMNS]
WINDOW = "{type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {c: count()}}"


def plan_of(rest: str, *, head: str = ORDERS) -> ExecutionPlan:
    return compiled(rest, head=head).plan


def names(plan: ExecutionPlan, sink: str) -> list[str]:
    return [column.name for column in plan.sinks[sink].columns]


def only(plan: ExecutionPlan) -> QueryPlan:
    (query,) = plan.queries
    return query


def test_sinks_of_one_operator_and_its_side_ports_are_one_query() -> None:
    query = only(
        plan_of(f"""\
        operators:
          f: {{type: filter, input: orders, where: n > 0}}
          w: {WINDOW.replace("orders", "f")}
          why: {{type: filter, input: orders.errors, where: "_error_code = 'x'"}}
        sinks:
          late: {{input: w.late, console: {{}}}}
          bad: {{input: why, console: {{}}}}
          a: {{input: w, console: {{}}}}
          b: {{input: w, console: {{}}}}
        """)
    )
    assert (query.id, query.terminal, query.sources, query.operators) == ("w", "w", ("orders",), ("f", "w"))
    assert query.side_operators == ("why",)
    assert query.sinks == ("late", "bad", "a", "b")
    assert query.accounts == ("orders", "f", "why", "w")


def test_a_branch_with_sinks_on_several_ports_is_one_query() -> None:
    plan = plan_of("""\
        operators: {b: {type: branch, input: orders, when: {vip: n > 9, bot: n < 0}}}
        sinks:
          vip: {input: b.vip, console: {}}
          rest: {input: b, console: {}}
          bot: {input: b.bot, console: {}}
        """)
    assert (only(plan).terminal, only(plan).sinks) == ("b", ("vip", "rest", "bot"))
    assert [plan.sinks[id_].input for id_ in only(plan).sinks] == ["b.vip", "b", "b.bot"]


def test_two_terminals_share_a_prefix_that_the_first_accounts_for() -> None:
    plan = plan_of(f"""\
        operators:
          f: {{type: filter, input: orders, where: n > 0}}
          w: {WINDOW.replace("orders", "f")}
          d: {{type: dedup, input: f, within: 1m}}
        sinks:
          dups: {{input: d, console: {{}}}}
          bad: {{input: orders.errors, console: {{}}}}
          counts: {{input: w, console: {{}}}}
          late: {{input: w.late, console: {{}}}}
        """)
    first, second = plan.queries
    assert (first.id, first.sinks, first.accounts) == ("d", ("dups", "bad"), ("orders", "f", "d"))
    assert (second.id, second.sinks, second.accounts) == ("w", ("counts", "late"), ("w",))
    assert second.sources == ("orders",)
    assert second.operators == ("f", "w")


def test_a_side_port_alone_makes_a_query_of_its_node() -> None:
    query = only(plan_of(f"operators: {{w: {WINDOW}}}\nsinks: {{late: {{input: w.late, console: {{}}}}}}"))
    assert (query.terminal, query.sinks, query.operators) == ("w", ("late",), ("w",))


def test_two_side_ports_above_each_other_share_the_query_of_the_lower_one() -> None:
    plan = plan_of(f"""\
        operators: {{w: {WINDOW}}}
        sinks: {{late: {{input: w.late, console: {{}}}}, bad: {{input: orders.errors, console: {{}}}}}}
        """)
    assert only(plan).sinks == ("late", "bad")


def test_side_ports_in_the_other_order_still_read_the_source_once() -> None:
    plan = plan_of(f"""\
        operators: {{w: {WINDOW}}}
        sinks: {{bad: {{input: orders.errors, console: {{}}}}, late: {{input: w.late, console: {{}}}}}}
        """)
    assert [query.sinks for query in plan.queries] == [("bad", "late")]


def test_a_sink_on_a_source_is_a_query_of_the_source() -> None:
    query = only(plan_of("sinks: {o: {input: orders, console: {}}}"))
    assert (query.terminal, query.sources, query.operators, query.accounts) == ("orders", ("orders",), (), ("orders",))


def test_what_feeds_no_sink_is_not_in_the_plan() -> None:
    head = ORDERS + "  spare: {files: {path: b, format: text}}\n"
    plan = plan_of("operators: {w: " + WINDOW + "}\nsinks: {o: {input: orders, console: {}}}", head=head)
    assert (list(plan.sources), list(plan.operators)) == (["orders"], [])


def test_operators_are_in_the_order_events_pass_them() -> None:
    plan = plan_of("""\
        operators:
          c: {type: filter, input: b, where: n > 0}
          a: {type: filter, input: orders, where: n > 0}
          b: {type: filter, input: a, where: n > 0}
        sinks: {o: {input: c, console: {}}}
        """)
    assert list(plan.operators) == ["a", "b", "c"]
    assert only(plan).operators == ("a", "b", "c")


def test_columns_that_sinks_write() -> None:
    plan = plan_of(f"""\
        operators:
          w: {WINDOW}
          d: {{type: dedup, input: orders, within: 1m}}
          short: {{type: map, input: orders.errors, select: {{line: cast(_raw as string)}}}}
          less: {{type: map, input: orders.errors, drop: [_raw, _headers]}}
        sinks:
          main: {{input: w, console: {{}}}}
          late: {{input: w.late, console: {{}}}}
          again: {{input: d.late, console: {{}}}}
          bad: {{input: orders.errors, console: {{}}}}
          lines: {{input: short, console: {{}}}}
          fewer: {{input: less, console: {{}}}}
        """)
    payload = ["id", "store", "amount", "tags", "n", "ts"]
    assert names(plan, "main") == ["store", "window_start", "window_end", "c"]
    assert names(plan, "late") == [*payload, *SYSTEM, "window_start", "window_end", "watermark", "lateness_ms"]
    assert names(plan, "again") == [*payload, *SYSTEM, "watermark", "lateness_ms"]
    assert names(plan, "bad") == ["_raw", "_error_code", "_error", *SYSTEM]
    assert names(plan, "lines") == ["line"]
    assert names(plan, "fewer") == ["_error_code", "_error", *SYSTEM[:-1]]


def test_a_map_never_selects_system_columns_which_every_event_carries() -> None:
    plan = plan_of("""\
        operators: {m: {type: map, input: orders.errors, set: {line: cast(_raw as string)}}}
        sinks: {o: {input: m, console: {}}}
        """)
    operator = plan.operators["m"]
    assert operator.type == "map"
    assert [item.name for item in operator.select] == ["_raw", "_error_code", "_error", "line"]
    assert [column.name for column in operator.output] == ["_raw", "_error_code", "_error", "line"]
    assert names(plan, "o") == ["_raw", "_error_code", "_error", *SYSTEM, "line"]


def test_a_source_is_planned_with_units_defaults_and_unresolved_references() -> None:
    head = """\
tidemark: 1
name: x
sources:
  s:
    files: {path: $IN, format: csv}
    schema: {t: timestamp(ms), a: "decimal(10, 2)"}
    event_time: t
    watermark: {delay: 250ms}
"""
    source = plan_of("sinks: {o: {input: s, console: {}}}", head=head).sources["s"]
    assert source.options["path"] == "$IN"
    assert [(column.name, column.type) for column in source.columns] == [("t", "timestamp(ms)"), ("a", "decimal(10,2)")]
    assert (source.watermark.delay_ms, source.watermark.idle_timeout_ms, source.watermark.max_future_ms) == (
        250,
        30_000,
        3_600_000,
    )
    assert (source.format, source.on_error, source.max_error_rate) == ("csv", "divert", None)


def test_a_timestamp_has_no_unit_behind_its_source() -> None:
    head = ORDERS.replace("ts: timestamp", "ts: timestamp(ms)")
    assert names(plan_of("sinks: {o: {input: orders, console: {}}}", head=head), "o")[-1] == "ts"
    assert compile_job(job("sinks: {o: {input: orders, console: {}}}", head=head)).plan.sinks["o"].columns[-1].type == (
        "timestamp"
    )


def test_a_generator_is_planned_with_checked_sql_and_milliseconds() -> None:
    head = """\
tidemark: 1
name: x
sources:
  g:
    generator:
      count: 10
      seed: 7
      partitions: 4
      start: 2026-01-01
      out_of_order: {fraction: 0.1, max: 10s}
      columns: {user: "concat('u', cast(n % 10 as string))", n2: n * 2}
"""
    source = plan_of("sinks: {o: {input: g, console: {}}}", head=head).sources["g"]
    assert source.format == "columns"
    assert [(column.name, column.type) for column in source.columns] == [("user", "string"), ("n2", "long")]
    assert set(source.options["columns_sql"]) == {"user", "n2"}
    assert "concat" in source.options["columns_sql"]["user"].lower()
    assert source.options["start_ms"] == 1_767_225_600_000
    assert source.options["out_of_order"] == {"fraction": 0.1, "max": 10_000}


def test_a_plan_goes_through_json_unchanged() -> None:
    plan = plan_of(f"operators: {{w: {WINDOW}}}\nsinks: {{o: {{input: w, console: {{}}}}}}")
    assert ExecutionPlan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize("times", range(3))
def test_planning_is_deterministic(times: int) -> None:
    text = job(f"operators: {{w: {WINDOW}}}\nsinks: {{o: {{input: w, console: {{}}}}}}")
    assert compile_job(text).plan.model_dump_json() == compile_job(text).plan.model_dump_json()


REFUSED = """
operators:
  w: {type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {c: count()}}
  known: {type: filter, input: out.errors, where: "_error_code <> 'check_failed' and _source = 'w'"}
sinks:
  bad: {input: known, sqlite: {path: a, table: bad}}
  worst: {input: late.errors, files: {path: worst, format: jsonl}}
  out: {input: w, postgres: {url: $PG, table: t}}
  late: {input: w.late, sqlite: {path: a, table: late}}
"""


def test_refused_rows_belong_to_the_query_of_their_sink_and_are_written_after_it() -> None:
    plan = compiled(REFUSED).plan
    (query,) = plan.queries
    assert query.sinks == ("out", "late", "bad", "worst")
    assert query.side_operators == ("known",)
    assert query.accounts == ("orders", "w", "known")
    assert [sink for sink, each in plan.sinks.items() if each.keeps_refused] == ["out", "late"]


def test_a_refused_row_has_what_the_sink_was_to_write_its_origin_and_the_reason() -> None:
    names = [column.name for column in compiled(REFUSED).plan.sinks["bad"].columns]
    assert names[:4] == ["store", "window_start", "window_end", "c"]
    assert names[4:] == [*(name for name, _ in SYSTEM_COLUMNS), "_error_code", "_error"]
