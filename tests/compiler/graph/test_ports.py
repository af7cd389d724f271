"""The columns and types at each port of each operator, and the tables that list operators and connectors."""

from __future__ import annotations

from typing import get_args

import pytest
from support.jobs import compiled

from tidemark.compiler.graph.node import LATE, MAIN
from tidemark.compiler.graph.operators.table import OPERATORS, OPERATORS_TO_COME
from tidemark.compiler.graph.order import topological
from tidemark.compiler.plan.plan import AnyOperator
from tidemark.connectors.catalogue import CONNECTORS


def main_port(operator: str) -> dict[str, str]:
    graph = compiled(f"operators:\n  op: {operator}\nsinks: {{o: {{input: op, console: {{}}}}}}").graph
    return {name: str(type_) for name, type_ in graph.operators["op"].ports[MAIN].columns.items()}


ALL = {
    "id": "string",
    "store": "string",
    "amount": "double",
    "tags": "array<string>",
    "n": "int",
    "ts": "timestamp",
}


@pytest.mark.parametrize(
    ("operator", "columns"),
    [
        ("{type: filter, input: orders, where: n > 0}", ALL),
        ("{type: branch, input: orders, when: {a: n > 0}}", ALL),
        ("{type: dedup, input: orders, within: 1m}", ALL),
        ("{type: map, input: orders, select: {a: n, b: amount * 2}}", {"a": "int", "b": "double"}),
        (
            "{type: map, input: orders, set: {n: amount}, drop: [tags, ts, id]}",
            {"store": "string", "amount": "double", "n": "double"},
        ),
        ("{type: flat_map, input: orders, each: tags, as: tag}", {**ALL, "tag": "string"}),
        (
            "{type: window, input: orders, key: {s: upper(store)}, window: {session: 1m},"
            " aggregate: {l: 'collect_list(n, 5)'}}",
            {"s": "string", "window_start": "timestamp", "window_end": "timestamp", "l": "array<int>"},
        ),
        (
            "{type: aggregate, input: orders, key: [n], aggregate: {c: count(), m: max(ts)}}",
            {"n": "int", "c": "long", "m": "timestamp"},
        ),
    ],
)
def test_columns_of_the_main_port(operator: str, columns: dict[str, str]) -> None:
    found = main_port(operator)
    assert found == columns
    assert list(found) == list(columns)


def test_a_column_whose_name_is_a_word_of_sql_is_quoted() -> None:
    head = "tidemark: 1\nname: x\nsources:\n  s: {files: {path: a, format: csv}, schema: {order: int, x: int}}\n"
    plan = compiled(
        """\
        operators:
          m: {type: map, input: s, drop: [x]}
          a: {type: aggregate, input: m, key: [order], aggregate: {c: count()}}
        sinks: {o: {input: a, console: {}}}
        """,
        head=head,
    ).plan
    mapped, counted = plan.operators["m"], plan.operators["a"]
    assert mapped.type == "map"
    assert mapped.select[0].expression.sql == "`order`"
    assert counted.type == "aggregate"
    assert counted.key[0].expression.sql == "`order`"


def test_a_dedup_behind_a_window_may_have_its_late_port_connected() -> None:
    graph = compiled("""\
        operators:
          w: {type: window, input: orders, key: [store], window: {tumbling: 1m}, aggregate: {c: count()}}
          d: {type: dedup, input: w, by: [store], within: 1h}
        sinks: {o: {input: d, console: {}}, late: {input: d.late, console: {}}}
        """).graph
    assert list(graph.operators["d"].ports[LATE].columns)[:4] == ["store", "window_start", "window_end", "c"]


def test_every_operator_of_the_table_has_a_plan_and_every_plan_an_operator() -> None:
    planned = {option.model_fields["type"].default for option in get_args(get_args(AnyOperator)[0])}
    assert {operator.name for operator in OPERATORS} == planned
    assert planned.isdisjoint(OPERATORS_TO_COME)
    assert all(operator.docs and MAIN in operator.ports for operator in OPERATORS)


def test_every_connector_says_what_it_does_and_what_it_guarantees() -> None:
    assert len({connector.name for connector in CONNECTORS}) == len(CONNECTORS)
    for connector in CONNECTORS:
        assert connector.docs
        assert connector.source or connector.sink or connector.later
        assert bool(connector.sink) == bool(connector.guarantee)


def test_order_and_cycles() -> None:
    assert topological({"b": ["a"], "a": ["s"], "c": []}) == (["a", "c", "b"], [])
    order, cycles = topological({"x": ["y"], "y": ["x"], "z": ["x"], "p": ["p"], "q": ["s"]})
    assert order == ["q"]
    assert cycles == [["y", "x"], ["p"]]
