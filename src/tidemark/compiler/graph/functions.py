"""Every scalar function an expression may call, as data, and the names that are known but refused.

A function that is not in FUNCTIONS cannot reach Spark.
"""

from __future__ import annotations

from tidemark.compiler.graph.expression.function_rules import ARRAY, Function, same_as
from tidemark.compiler.graph.expression.functions_collections import COLLECTION_FUNCTIONS
from tidemark.compiler.graph.expression.functions_numbers import CHOICE_FUNCTIONS, NUMBER_FUNCTIONS
from tidemark.compiler.graph.expression.functions_text import TEXT_FUNCTIONS
from tidemark.compiler.graph.expression.functions_time import TIME_FUNCTIONS
from tidemark.compiler.graph.expression.result import Scope
from tidemark.schema import DATE, DOUBLE, LONG, STRING, TIMESTAMP, parse_type

UNREPEATABLE_FUNCTIONS: tuple[Function, ...] = (
    Function("current_date", (), DATE, "today", "current_date()", deterministic=False),
    Function("current_timestamp", (), TIMESTAMP, "the time now", "current_timestamp()", deterministic=False),
    Function(
        "monotonically_increasing_id",
        (),
        LONG,
        "a number per row",
        "monotonically_increasing_id()",
        deterministic=False,
    ),
    Function("now", (), TIMESTAMP, "the time now", "now()", deterministic=False),
    Function("rand", (), DOUBLE, "a random number from 0 to 1", "rand()", deterministic=False),
    Function("randn", (), DOUBLE, "a random number, normally distributed", "randn()", deterministic=False),
    Function("shuffle", (ARRAY,), same_as(0), "an array in random order", "shuffle(tags)", deterministic=False),
    Function("uuid", (), STRING, "a random id", "uuid()", deterministic=False),
)

FAMILIES: tuple[tuple[str, tuple[Function, ...]], ...] = (
    ("text", TEXT_FUNCTIONS),
    ("numbers", NUMBER_FUNCTIONS),
    ("choices", CHOICE_FUNCTIONS),
    ("time", TIME_FUNCTIONS),
    ("collections", COLLECTION_FUNCTIONS),
    ("unrepeatable", UNREPEATABLE_FUNCTIONS),
)
FUNCTIONS: tuple[Function, ...] = tuple(function for _, family in FAMILIES for function in family)
FUNCTIONS_BY_NAME = {function.name: function for function in FUNCTIONS}

UNREPEATABLE_NAMES = frozenset(
    (
        "curdate",
        "current_time",
        "current_timezone",
        "current_user",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "localtimestamp",
        "random",
        "randstr",
        "session_user",
        "spark_partition_id",
        "uniform",
        "user",
        "version",
    )
)
RUNS_CODE = frozenset(("java_method", "reflect", "try_reflect"))
ONE_ROW_TO_MANY = frozenset(
    ("explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack")
)
WINDOW_NAMES = frozenset(
    (
        "cume_dist",
        "dense_rank",
        "lag",
        "lead",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
        "row_number",
        "session_window",
        "window",
        "window_time",
    )
)
OTHER_AGGREGATES = frozenset(
    (
        "any",
        "any_value",
        "approx_count_distinct",
        "array_agg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "corr",
        "covar_pop",
        "covar_samp",
        "every",
        "first_value",
        "kurtosis",
        "last_value",
        "listagg",
        "mean",
        "median",
        "mode",
        "percentile",
        "percentile_approx",
        "skewness",
        "some",
        "std",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "var_pop",
        "var_samp",
    )
)

EXAMPLE_COLUMNS: Scope = {
    name: parse_type(text)
    for name, text in (
        ("name", "string"),
        ("body", "string"),
        ("n", "int"),
        ("big", "long"),
        ("ratio", "float"),
        ("amount", "double"),
        ("price", "decimal(10,2)"),
        ("flag", "boolean"),
        ("day", "date"),
        ("at", "timestamp"),
        ("until", "timestamp"),
        ("payload", "binary"),
        ("tags", "array<string>"),
        ("scores", "array<int>"),
        ("grid", "array<array<int>>"),
        ("labels", "map<string,string>"),
        ("point", "struct<x:int,y:double>"),
    )
}
