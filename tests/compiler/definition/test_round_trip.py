"""A definition goes through YAML, JSON and back without loss, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jobs import ORDERS, job

from tidemark.compiler.compile import compile_job
from tidemark.compiler.definition import emit
from tidemark.compiler.definition.job import JobDefinition
from tidemark.compiler.definition.parse import parse
from tidemark.compiler.definition.read import read

# What a definition can hold: no NUL, no half of a surrogate pair, numbers that JSON can carry.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
AWKWARD = st.sampled_from(
    ["", " ", "~", "null", "true", "on", "1", "1m", "-", "- a", "a: b", "a #b", "#", "&a", "*a", "!t", "|", ">", "%",
     "@", "`", "'", '"', "\\", "[", "{", "a,b", "a\nb", "a\n", "\t", "\x7f", "\x85", "\u2028", "\ufeff", "😀", "0o7",
     "1e5", ".inf", "<<", "---", "...", "? a", "count()", "a > 0", "$HOME/x", "it's", "x" * 200]
)  # fmt: skip
STRINGS = AWKWARD | TEXT
NUMBERS = st.integers(-(10**38), 10**38) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=12,
)
IDS = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
DURATIONS = st.builds(lambda n, unit: f"{n}{unit}", st.integers(1, 90), st.sampled_from(["ms", "s", "m", "h", "d"]))
EXPRESSIONS = AWKWARD.filter(str.strip) | TEXT.filter(str.strip)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def joined(required: dict[str, Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return optional(**fields).map(lambda extra: {**required, **extra})


WATERMARKS = optional(delay=DURATIONS, idle_timeout=DURATIONS, max_future=DURATIONS)
SOURCES = joined(
    {"files": {"path": "$IN/a b", "format": "jsonl"}},
    schema=st.dictionaries(STRINGS, STRINGS, max_size=3),
    event_id=EXPRESSIONS,
    key=EXPRESSIONS,
    watermark=WATERMARKS,
    on_error=st.sampled_from(["divert", "fail"]),
    max_error_rate=st.floats(0, 1) | st.integers(0, 1),
)
KEYS = st.lists(EXPRESSIONS, max_size=3) | st.dictionaries(STRINGS, EXPRESSIONS, max_size=3)
AGGREGATES = st.dictionaries(STRINGS, EXPRESSIONS, min_size=1, max_size=3)
OPERATORS = st.one_of(
    joined({"type": "filter", "input": "a.late"}, where=EXPRESSIONS).filter(lambda data: "where" in data),
    joined({"type": "map", "input": "a"}, select=st.dictionaries(STRINGS, EXPRESSIONS), drop=st.lists(EXPRESSIONS)),
    st.just({"type": "flat_map", "input": "a", "each": "split(x, ' ')", "as": "word"}),
    st.just({"type": "union", "inputs": ["a", "b.vip"]}),
    st.builds(lambda by: {"type": "dedup", "input": "a", "by": by, "within": "1m"}, st.lists(EXPRESSIONS, min_size=1)),
    st.builds(
        lambda key, aggregate: {"type": "aggregate", "input": "a", "key": key, "aggregate": aggregate}, KEYS, AGGREGATES
    ),
    joined(
        {"type": "window", "input": "a", "window": {"sliding": "5m", "every": "1m"}, "aggregate": {"c": "count()"}},
        key=KEYS,
        emit=st.sampled_from(["on_close", "on_update"]),
        allowed_lateness=DURATIONS,
        trigger=VALUES,
    ),
)
SINKS = st.sampled_from(
    [
        {"input": "a", "console": {}},
        {"input": "a.errors", "files": {"path": "out", "format": "csv", "partition_by": ["day"]}},
        {"input": "a", "sqlite": {"path": "x", "table": "t", "key": ["a"], "mode": "upsert"}},
    ]
)
ROWS = st.lists(st.dictionaries(STRINGS, VALUES, min_size=2, max_size=3), max_size=2)
CONTROLS = st.sampled_from(
    [{"crash": True}, {"epoch": True}, {"advance_time": "30s"}, {"advance_watermark": "2026-01-01"}]
)
CASES = st.fixed_dictionaries(
    {
        "name": EXPRESSIONS,
        "input": st.dictionaries(IDS, st.builds(lambda rows, control: [*rows, control], ROWS, CONTROLS), max_size=2),
        "expect": st.dictionaries(IDS, ROWS, max_size=2),
    }
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    ids = iter(draw(st.lists(IDS, min_size=6, max_size=6, unique=True)))
    data = draw(
        joined(
            {"tidemark": 1, "name": "a-job_1"},
            mode=st.sampled_from(["microbatch", "backfill"]),
            parallelism=st.integers(1, 64),
            epoch=optional(interval=DURATIONS, max_events=st.integers(1, 10**6)),
            sink_retry=DURATIONS,
            tests=st.lists(CASES, min_size=1, max_size=2),
        )
    )
    data["sources"] = {next(ids): draw(SOURCES) for _ in range(draw(st.integers(1, 2)))}
    operators = {next(ids): draw(OPERATORS) for _ in range(draw(st.integers(0, 2)))}
    data |= {"operators": operators} if operators else {}
    data["sinks"] = {next(ids): draw(SINKS) for _ in range(draw(st.integers(1, 2)))}
    return data


def parsed(text: str) -> JobDefinition:
    definition, found = parse(text)
    assert definition is not None, found
    return definition


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_any_value_survives_yaml_and_json(value: Any) -> None:
    for text in (emit.to_yaml({"value": value}), emit.to_json({"value": value})):
        document, problems = read(text)
        assert problems == []
        assert document.data == {"value": value}
        assert json.dumps(document.data) == json.dumps({"value": value})


@given(jobs())
@settings(max_examples=60, deadline=None)
def test_any_definition_survives_yaml_and_json(data: dict[str, Any]) -> None:
    first = parsed(emit.to_json(data))
    assert first.to_dict() == data
    assert parsed(first.to_yaml()) == first
    assert parsed(first.to_json()) == first
    assert parsed(first.to_yaml()).to_yaml() == first.to_yaml()


def test_order_of_sinks_and_columns_is_kept() -> None:
    text = job("sinks: {z: {input: orders, console: {}}, a: {input: orders, console: {}}}")
    again = parsed(parsed(text).to_json())
    assert list(again.sinks) == ["z", "a"]
    assert list(again.sources["orders"].columns or ()) == ["id", "store", "amount", "tags", "n", "ts"]


def test_a_definition_compiles_to_the_plan_of_its_text() -> None:
    text = job("sinks: {o: {input: orders, console: {}}}")
    assert compile_job(parsed(text)).plan == compile_job(text).plan


def test_a_definition_without_a_text_has_no_positions() -> None:
    definition = parsed(ORDERS + "sinks: {o: {input: nobody, console: {}}}")
    with pytest.raises(Exception, match="nobody") as caught:
        compile_job(definition)
    (found,) = caught.value.diagnostics  # type: ignore[attr-defined]  # a DefinitionError
    assert (found.path, found.line, found.column) == ("sinks.o.input", None, None)


def test_yaml_for_people() -> None:
    definition = parsed(job("sinks: {o: {input: orders, files: {path: out, format: csv}}}"))
    assert definition.to_yaml() == (
        "tidemark: 1\n"
        "name: orders\n"
        "sources:\n"
        "  orders:\n"
        "    files: {path: in, format: jsonl}\n"
        '    schema: {id: string, store: string, amount: double, tags: "array<string>", n: int, ts: timestamp}\n'
        "    event_time: ts\n"
        "sinks:\n"
        "  o:\n"
        "    files: {path: out, format: csv}\n"
        "    input: orders\n"
    )
