"""What the expression language takes, what it says Spark shall run, and what it refuses with a place and a reason."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.compiler.graph.expressions import Checked, ExpressionProblem, check
from tidemark.schema import Type, parse_type

SCOPE: dict[str, Type] = {
    name: parse_type(text)
    for name, text in {
        "amount": "double",
        "n": "int",
        "big": "long",
        "ratio": "float",
        "price": "decimal(10,2)",
        "name": "string",
        "Store": "string",
        "flag": "boolean",
        "day": "date",
        "ts": "timestamp",
        "raw_time": "timestamp(ms)",
        "tags": "array<string>",
        "items": "array<struct<sku:string,qty:int>>",
        "headers": "map<string,string>",
        "counts": "map<long,int>",
        "point": "struct<X:int,y:double>",
        "odd`name": "int",
        "with space.dot": "int",
        "_event_time": "timestamp",
    }.items()
}


def refused(text: str) -> ExpressionProblem:
    with pytest.raises(ExpressionProblem) as problem:
        check(text, SCOPE)
    return problem.value


@pytest.mark.parametrize(
    ("text", "sql", "type_"),
    [
        ("amount > 0", "(`amount` > 0)", "boolean"),
        ("point.x + 1", "(`point`['X'] + 1)", "int"),
        ("STORE", "`Store`", "string"),
        ("`odd``name`", "`odd``name`", "int"),
        ("`with space.dot`", "`with space.dot`", "int"),
        ("headers.trace", "`headers`['trace']", "string"),
        ("counts[n]", "`counts`[`n`]", "int"),
        ("items.sku", "`items`['sku']", "array<string>"),
        ("items[0].qty", "`items`[0]['qty']", "int"),
        ("not flag and n = 1 or n = 2", "(((NOT `flag`) AND (`n` = 1)) OR (`n` = 2))", "boolean"),
        ("n | 1 & 2", "(`n` | (1 & 2))", "int"),
        ("name || 'x' || n", "concat(concat(`name`, 'x'), `n`)", "string"),
        ("-n", "(- `n`)", "int"),
        ("- -5", "(- (-5))", "int"),
        ("1 - -1", "(1 - (-1))", "int"),
        ("case n when 1 then 'a' end", "CASE WHEN (`n` = 1) THEN 'a' END", "string"),
        ("n not in (1, 2)", "(NOT (`n` IN (1, 2)))", "boolean"),
        ("n is distinct from big", "(NOT (`n` <=> `big`))", "boolean"),
        ("name like 'a!%' escape '!'", "(`name` LIKE 'a!%' ESCAPE '!')", "boolean"),
        ("n::string", "CAST(`n` AS string)", "string"),
        ("n::int < 5", "(CAST(`n` AS int) < 5)", "boolean"),
        ("cast(n as bigint)", "CAST(`n` AS bigint)", "long"),
        ("cast(tags as array<int>)", "CAST(`tags` AS array<int>)", "array<int>"),
        ("ts + interval 5 minutes", "try_add(`ts`, INTERVAL '300.000000' SECOND)", "timestamp"),
        ("ts - interval '1' month", "try_subtract(`ts`, INTERVAL '1' MONTH)", "timestamp"),
        ("day + interval 1 week", "date_add(`day`, (7))", "date"),
        ("day - 1", "date_sub(`day`, CAST(CAST(1 AS DECIMAL(6,0)) AS INT))", "date"),
        ("ts > '2026-01-31'", "(`ts` > TIMESTAMP '2026-01-31')", "boolean"),
        ("transform(tags, x -> length(x))", "transform(`tags`, `x` -> length(`x`))", "array<int>"),
        ("transform(items, i -> i.qty)", "transform(`items`, `i` -> `i`['qty'])", "array<int>"),
        ("struct(n, name as label)", "named_struct('n', `n`, 'label', `name`)", "struct<n:int,label:string>"),
        ("hour(day)", "hour(TRY_CAST(`day` AS timestamp))", "int"),
        ("cast(day as timestamp) < ts", "(TRY_CAST(`day` AS timestamp) < `ts`)", "boolean"),
        ("raw_time", "`raw_time`", "timestamp"),
        ("x'1f'", "X'1F'", "binary"),
        ("regexp_extract(name, '(a)(b)', 2)", "regexp_extract(`name`, '(a)(b)', 2)", "string"),
        (r"regexp_replace(name, '(a)', r'$1\\\$')", r"regexp_replace(`name`, '(a)', '$1\\\\\\$')", "string"),
    ],
)
def test_what_spark_gets(text: str, sql: str, type_: str) -> None:
    checked = check(text, SCOPE)
    assert (checked.sql, str(checked.type)) == (sql, type_)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", "int"),
        ("2147483648", "long"),
        ("-2147483648", "int"),
        ("1L", "long"),
        ("12345678901234567890", "decimal(20,0)"),
        ("0.05", "decimal(2,2)"),
        ("1.5BD", "decimal(2,1)"),
        ("1e3", "double"),
        ("1.5F", "float"),
        ("n / 2", "double"),
        ("n / price", "decimal(23,11)"),
        ("price + 1", "decimal(11,2)"),
        ("price * price", "decimal(21,4)"),
        ("price / 3", "decimal(14,6)"),
        ("price % big", "decimal(10,2)"),
        ("price + amount", "double"),
        ("n + ratio", "float"),
        ("n div 2", "long"),
        ("coalesce(price, 0)", "decimal(12,2)"),
        ("if(flag, n, big)", "long"),
        ("array(1, 2.5)", "array<decimal(11,1)>"),
        ("cast(price as decimal(38,10)) * price", "decimal(38,6)"),
        ("extract(second from ts)", "decimal(8,6)"),
        ("round(price, 1)", "decimal(10,1)"),
        ("floor(price)", "decimal(9,0)"),
    ],
)
def test_types_are_sparks(text: str, type_: str) -> None:
    assert str(check(text, SCOPE).type) == type_


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("reflect('java.lang.Runtime','getRuntime')", "function_not_allowed", 0),
        ("1 + java_method('java.lang.Runtime','exit')", "function_not_allowed", 4),
        ("`reflect`('a', 'b')", "function_not_allowed", 0),
        ("TRY_REFLECT('a', 'b')", "function_not_allowed", 0),
        ("(select * from text.`/etc/passwd`)", "expression_not_allowed", 1),
        ("n in (select 1)", "expression_not_allowed", 6),
        ("exists(select 1)", "expression_not_allowed", 7),
        ("n = (with t as (select 1) select * from t)", "expression_not_allowed", 5),
        ("text.`/etc/passwd`", "unknown_column", 0),
        ("transform(n) using 'sh'", "expression_not_allowed", 13),
        ("sum(amount)", "aggregate_not_allowed", 0),
        ("row_number() over ()", "expression_not_allowed", 13),
        ("row_number()", "function_not_allowed", 0),
        ("explode(tags)", "function_not_allowed", 0),
        ("*", "expression_not_allowed", 0),
        ("n; drop table x", "expression_not_allowed", 1),
        ("n -- comment", "expression_not_allowed", 2),
        ("n /* c */ + 1", "expression_not_allowed", 2),
        ("/*+ broadcast(x) */ n", "expression_not_allowed", 0),
        ("${env:HOME}", "expression_not_allowed", 0),
        (":p", "expression_not_allowed", 0),
        ("?", "expression_not_allowed", 0),
        ("lower(str => name)", "expression_not_allowed", 10),
        ("a.b.c(1)", "expression_not_allowed", 5),
        ("(n, big)", "expression_not_allowed", 2),
        ("x -> x", "expression_syntax", 2),
        ("lower(x -> x)", "bad_argument", 6),
        ("name like any ('a', 'b')", "expression_not_allowed", 10),
        ("rand()", "non_deterministic", 0),
        ("now() > ts", "non_deterministic", 0),
        ("ts < current_timestamp", "non_deterministic", 5),
        ("input_file_name()", "non_deterministic", 0),
        ("cast('now' as timestamp)", "non_deterministic", 0),
        ("to_timestamp(concat('no', 'w'))", "non_deterministic", 0),
        ("date('today')", "non_deterministic", 0),
        ("timestamp 'now'", "bad_argument", 10),
        ("date '2026-02-31'", "bad_argument", 5),
        ("ammount > 1", "unknown_column", 0),
        ("point.z", "unknown_column", 6),
        ("lowr(name)", "unknown_function", 0),
        ("lower()", "bad_argument", 0),
        ("lower(name, name)", "bad_argument", 0),
        ("lower(n)", "bad_argument", 6),
        ("amount > '5'", "bad_argument", 7),
        ("n = null", "bad_argument", 2),
        ("n in (1, null)", "bad_argument", 2),
        ("ts > 'yesterday'", "bad_argument", 3),
        ("name + 1", "bad_argument", 5),
        ("ts - ts", "bad_argument", 3),
        ("flag = 1", "bad_argument", 5),
        ("headers = headers", "bad_argument", 8),
        ("not n", "bad_argument", 0),
        ("n and flag", "bad_argument", 0),
        ("case when n then 1 end", "bad_argument", 0),
        ("null", "bad_argument", 0),
        ("array(null)", "bad_argument", 0),
        ("interval 1 day", "bad_argument", 0),
        ("day + interval 1 hour", "bad_argument", 4),
        ("interval 1 month 1 day", "bad_argument", 0),
        ("interval 1 fortnight", "bad_argument", 0),
        ("cast(n as date)", "bad_argument", 0),
        ("cast(n as text)", "expression_syntax", 10),
        ("cast(n as timestamp(ms))", "expression_syntax", 10),
        ("n between 1 2", "expression_syntax", 12),
        ("n +", "expression_syntax", 3),
        ("", "expression_syntax", 0),
        ("'open", "expression_syntax", 0),
        ("n + `open", "expression_syntax", 4),
        ("n n", "expression_syntax", 2),
        ("n as m", "expression_syntax", 2),
        ("case end", "expression_syntax", 5),
        ("1e999", "expression_syntax", 0),
        ("0x1F", "expression_syntax", 0),
        ("1S", "expression_syntax", 0),
        ("'\\ud83d'", "expression_syntax", 0),
        ("n \x00", "expression_syntax", 2),
        ("element_at(tags, 0)", "bad_argument", 0),
        ("slice(tags, n, 2)", "bad_argument", 12),
        ("repeat(name, 1000000)", "bad_argument", 13),
        ("name rlike name", "bad_argument", 5),
        ("name like '\\\\'", "bad_argument", 5),
        ("date_format(ts, 'YYYY')", "bad_argument", 16),
        ("map(name, 1)", "bad_argument", 0),
        ("map('a', 1, 'a', 2)", "bad_argument", 0),
        ("timestampadd(fortnight, 1, ts)", "bad_argument", 13),
        ("filter(tags, x -> x)", "bad_argument", 0),
        ("struct(n, n)", "bad_argument", 0),
        ("regexp_extract(name, 'a[(]')", "bad_argument", 0),
        ("regexp_extract(name, r'\\((?:a)(?<b>c)', 2)", "bad_argument", 0),
        ("regexp_replace(name, '(a)', '$2')", "bad_argument", 0),
        ("regexp_replace(name, 'a', r'\\')", "bad_argument", 0),
        ("case when null then 1 end", "bad_argument", 0),
        ("array_append(array(1), 2.5)", "bad_argument", 0),
        ("unix_date(ts)", "bad_argument", 10),
        ("day = ts", "bad_argument", 4),
        ("coalesce(day, ts)", "bad_argument", 0),
        ("null || tags", "bad_argument", 5),
        ("from_json(name, 'int')", "bad_argument", 0),
    ],
)
def test_refused_at_the_right_place(text: str, code: str, offset: int) -> None:
    problem = refused(text)
    assert (problem.code, problem.offset) == (code, offset), problem.message


def test_hints_name_what_is_near_and_what_exists() -> None:
    assert "did you mean amount?" in str(refused("ammount").hint)
    assert "_event_time" in str(refused("nothing_like_it").hint)
    assert refused("lowr(name)").hint == "did you mean lower?"
    assert refused("point.z").hint == "the fields are X, y"
    assert "cast(x as double)" in str(refused("amount > 'x'").hint)
    assert "is null" in str(refused("n = null").hint)
    assert "timestampdiff" in str(refused("ts - ts").hint)


def test_columns_and_literals_are_told() -> None:
    checked = check("exists(tags, n -> n = name) and big > 5 and STORE = 'x'", SCOPE)
    assert checked.columns == {"tags", "name", "big", "Store"}
    assert check("'it''s'", SCOPE).literal == "it's"
    assert check("-5", SCOPE).literal == -5
    assert check("-n", SCOPE).literal is None


def test_a_name_that_differs_only_in_case_is_ambiguous() -> None:
    with pytest.raises(ExpressionProblem) as problem:
        check("a", {"A": parse_type("int"), "a": parse_type("int")})
    assert problem.value.code == "ambiguous_column"


def test_a_column_name_that_spark_would_replace_is_refused() -> None:
    with pytest.raises(ExpressionProblem) as problem:
        check("`${env:HOME}`", {"${env:HOME}": parse_type("int")})
    assert problem.value.code == "expression_not_allowed"


@pytest.mark.parametrize("text", ["'${env:HOME}'", "r'${a}'", "headers['${env:HOME}']", "headers.`${env:HOME}`"])
def test_spark_never_sees_a_variable_it_would_replace(text: str) -> None:
    """Spark puts environment variables in place of ${…} anywhere in SQL, also inside strings."""
    assert "${" not in check(text, SCOPE).sql


def test_unrepeatable_is_allowed_where_nothing_is_replayed() -> None:
    assert check("current_timestamp", SCOPE, replayable=False).sql == "current_timestamp()"
    assert check("rand() < 0.5", SCOPE, replayable=False).sql == "(rand() < 0.5BD)"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "(" * 4_000 + "n" + ")" * 4_000,
        "-" + " -" * 3_000 + "n",
        "not " * 2_000 + "flag",
        "struct(" * 1_000 + "n" + ")" * 1_000,
        "case when " * 900 + "flag",
        "n" + "[0]" * 3_000,
        "n" + " + n" * 2_400,
        "n" + "::int" * 1_900,
        "lower(" * 1_500,
        "cast(" * 1_500,
        "cast(n as " + "array<" * 1_500,
        "cast(n as " + "array<" * 1_000 + "int" + ">" * 1_000 + ")",
        "x" * 1_000_000,
        "'" * 9_999,
        "transform(tags, x -> " * 400,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    started = time.monotonic()
    assert refused(text).code.startswith(("expression_", "bad_argument"))
    assert time.monotonic() - started < 2


def test_long_conditions_are_no_problem() -> None:
    text = " or ".join(f"n = {number}" for number in range(900))
    assert check(text, SCOPE).type == parse_type("boolean")


TEXT_PIECES = st.sampled_from(
    ["n", "name", "tags", "(", ")", "[", "]", ",", ".", "->", "::", "'a'", "1", "1.5", "lower", "cast", "as", "int",
     "array", "<", ">", "=", "and", "not", "is", "null", "case", "when", "then", "end", "interval", "day", "in",
     "between", "like", "select", "from", "*", "-", "+", "|", "$", "{", "}", "`x`", "transform", "struct", "x", ";"]
)  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(st.lists(TEXT_PIECES, max_size=14).map(" ".join) | st.text(max_size=30))
def test_any_text_is_checked_or_refused_with_a_place(text: str) -> None:
    checked, problem = attempt(text)
    if problem is not None:
        assert 0 <= problem.offset <= len(text)
        assert problem.message
    if checked is not None and "try_" not in checked.sql:
        assert check(checked.sql, SCOPE).type == checked.type


def attempt(text: str) -> tuple[Checked | None, ExpressionProblem | None]:
    try:
        return check(text, SCOPE), None
    except ExpressionProblem as problem:
        return None, problem


def test_import_is_light() -> None:
    code = (
        "import sys, tidemark.compiler.graph.expressions; "
        "assert not [m for m in ('pyspark', 'pandas', 'numpy') if m in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
