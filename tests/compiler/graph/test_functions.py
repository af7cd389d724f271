"""The tables of functions and aggregates have no holes, and their rules hold beyond the one example."""

from __future__ import annotations

import pytest

from tidemark.compiler.graph.aggregates import AGGREGATES, LATER_AGGREGATES, Aggregate
from tidemark.compiler.graph.expression.function_rules import Function
from tidemark.compiler.graph.expressions import ExpressionProblem, check, check_aggregate
from tidemark.compiler.graph.functions import (
    EXAMPLE_COLUMNS,
    FAMILIES,
    FUNCTIONS,
    ONE_ROW_TO_MANY,
    OTHER_AGGREGATES,
    RUNS_CODE,
    UNREPEATABLE_NAMES,
    WINDOW_NAMES,
)


def test_each_name_stands_in_one_table() -> None:
    names = [
        *(function.name for function in FUNCTIONS),
        *(aggregate.name for aggregate in AGGREGATES),
        *LATER_AGGREGATES,
        *RUNS_CODE,
        *ONE_ROW_TO_MANY,
        *WINDOW_NAMES,
        *OTHER_AGGREGATES,
        *UNREPEATABLE_NAMES,
    ]
    assert sorted(names) == sorted(set(names))
    assert all(name == name.lower() for name in names)


def test_families_hold_all_functions() -> None:
    assert sum(len(family) for _, family in FAMILIES) == len(FUNCTIONS) > 150


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_each_function_has_a_doc_and_an_example_that_calls_it(function: Function) -> None:
    assert function.doc
    assert function.example.startswith(f"{function.name}(")
    assert check(function.example, EXAMPLE_COLUMNS, replayable=False).type is not None
    repeated = [parameter.repeated for parameter in function.parameters]
    assert not any(repeated[:-1])


@pytest.mark.parametrize(
    "function", [function for function in FUNCTIONS if not function.deterministic], ids=lambda function: function.name
)
def test_what_a_replay_would_change_is_refused(function: Function) -> None:
    with pytest.raises(ExpressionProblem) as problem:
        check(function.example, EXAMPLE_COLUMNS)
    assert problem.value.code == "non_deterministic"
    assert "_ingestion_time" in str(problem.value.hint)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda aggregate: aggregate.name)
def test_each_aggregate_has_a_doc_and_an_example_that_works(aggregate: Aggregate) -> None:
    assert aggregate.doc
    assert check_aggregate(aggregate.example, EXAMPLE_COLUMNS).function == aggregate.name
    assert (aggregate.error_bound is not None) == aggregate.name.startswith("approx_")


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("count()", "long"),
        ("count(name)", "long"),
        ("sum(n)", "long"),
        ("sum(ratio)", "double"),
        ("sum(price)", "decimal(20,2)"),
        ("sum(cast(price as decimal(35,2)))", "decimal(38,2)"),
        ("avg(n)", "double"),
        ("avg(price)", "decimal(14,6)"),
        ("min(at)", "timestamp"),
        ("first(labels)", "map<string,string>"),
        ("stddev(n)", "double"),
        ("count_distinct(point)", "long"),
        ("collect_list(name)", "array<string>"),
        ("max_by(tags, at)", "array<string>"),
        ("approx_percentile(price, 1)", "double"),
        ("approx_top_k(lower(name), 5)", "array<struct<item:string,count:long>>"),
    ],
)
def test_types_of_aggregates(text: str, type_: str) -> None:
    assert str(check_aggregate(text, EXAMPLE_COLUMNS).type) == type_


def test_constants_of_aggregates() -> None:
    assert check_aggregate("collect_list(name)", EXAMPLE_COLUMNS).parameters == (1000,)
    assert check_aggregate("collect_set(name, 7)", EXAMPLE_COLUMNS).parameters == (7,)
    assert check_aggregate("approx_percentile(amount, 0.99)", EXAMPLE_COLUMNS).parameters == (0.99,)
    assert check_aggregate("APPROX_TOP_K(name, 10)", EXAMPLE_COLUMNS).parameters == (10,)


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("count_min(name)", "not_available", 0),
        ("sum(amount) / count()", "aggregate_expected", 12),
        ("amount", "aggregate_expected", 0),
        ("lower(name)", "aggregate_expected", 0),
        ("median(amount)", "aggregate_expected", 0),
        ("summ(amount)", "unknown_function", 0),
        ("sum(name)", "bad_argument", 4),
        ("sum()", "bad_argument", 0),
        ("sum(amount, 1)", "bad_argument", 0),
        ("sum(sum(amount))", "aggregate_not_allowed", 4),
        ("sum(rand())", "non_deterministic", 4),
        ("sum(ammount)", "unknown_column", 4),
        ("count_if(n)", "bad_argument", 9),
        ("max(labels)", "bad_argument", 4),
        ("count(null)", "bad_argument", 6),
        ("count(*)", "expression_not_allowed", 6),
        ("count(distinct name)", "expression_not_allowed", 6),
        ("sum(amount) over ()", "expression_not_allowed", 12),
        ("sum(amount) filter (where flag)", "expression_not_allowed", 12),
        ("approx_percentile(amount)", "bad_argument", 0),
        ("approx_percentile(amount, 1.5)", "bad_argument", 26),
        ("approx_percentile(amount, n)", "bad_argument", 26),
        ("approx_top_k(name, 0)", "bad_argument", 19),
        ("approx_top_k(name, 1001)", "bad_argument", 19),
        ("approx_top_k(name, 2.5)", "bad_argument", 19),
        ("approx_top_k(name, true)", "bad_argument", 19),
        ("collect_list(name, -1)", "bad_argument", 20),
    ],
)
def test_refused_aggregates(text: str, code: str, offset: int) -> None:
    with pytest.raises(ExpressionProblem) as problem:
        check_aggregate(text, EXAMPLE_COLUMNS)
    assert (problem.value.code, problem.value.offset) == (code, offset)
