"""Hostile and odd texts: each becomes plain data or a diagnostic, never a stack trace."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jobs import diagnostics

from tidemark.compiler.definition.parse import parse
from tidemark.compiler.definition.read import MAX_CHARACTERS, MAX_DEPTH, read


def data_of(text: str) -> object:
    document, problems = read(text)
    assert problems == []
    return document.data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1m", "1m"),
        ("a: on", "on"),
        ("a: yes", "yes"),
        ("a: 2026-01-01", "2026-01-01"),
        ("a: 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("a: 12:30:45", "12:30:45"),
        ("a: 0o17", 15),
        ("a: 017", 17),
        ("a: 0x1F", 31),
        ("a: 1_000", "1_000"),
        ("a: 1e3", 1000.0),
        ("a: .5", 0.5),
        ("a: 5.", 5.0),
        ("a: ~", None),
        ("a:", None),
        ("a: ''", ""),
        ("a: 'true'", "true"),
        ("a: TRUE", True),
        ("a: tRUE", "tRUE"),
        ("a: <<", "<<"),
        ("a: =", "="),
        ("a: $HOME", "$HOME"),
        ("a: |\n  x\n  y\n", "x\ny\n"),
        ("a: >-\n  x\n  y\n", "x y"),
        ("a: 'é😀'", "é😀"),
        ('{"a":"\\ud83d\\ude00\\/"}', "😀/"),
        ('{\n\t"a":\t1\n}', 1),
    ],
)
def test_scalars_mean_what_yaml_1_2_and_json_say(text: str, value: object) -> None:
    found = data_of(text)
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "empty_document", 1, 1),
        ("# nothing\n", "empty_document", 1, 1),
        ("- a\n", "not_a_mapping", 1, 1),
        ("hello", "not_a_mapping", 1, 1),
        ("~", "not_a_mapping", 1, 1),
        ("a: b: c", "yaml_syntax", 1, 5),
        ("a: [1", "yaml_syntax", 1, 6),
        ("a: 'x", "yaml_syntax", 1, 6),
        ("a:\n\t- b", "yaml_syntax", 2, 1),
        ("a: 1\n---\nb: 2", "yaml_syntax", 2, 1),
        ("a: *nobody", "yaml_syntax", 1, 4),
        ("a: &a [*a]", "yaml_syntax", 1, 8),
        ("? [x]\n: 1", "yaml_syntax", 1, 3),
        ("? *x\n: 1", "yaml_syntax", 1, 3),
        ('a: "\\q"', "yaml_syntax", 1, 6),
        ("a: !!python/object/apply:os.system [x]", "tag_not_allowed", 1, 4),
        ("a: !!str 1", "tag_not_allowed", 1, 4),
        ("!x {a: 1}", "tag_not_allowed", 1, 1),
        ("%YAML 1.1\n---\na: 1", "tag_not_allowed", 1, 1),
        ("%TAG ! x\n---\na: 1", "tag_not_allowed", 1, 1),
        ("a: \x00", "bad_character", 1, 4),
        ("a: 1\nb: \x07", "bad_character", 2, 4),
        ("\ud800", "bad_character", 1, 1),
        ('a: "\\0"', "bad_value", 1, 4),
        ('a: "\\ud800"', "bad_value", 1, 4),
        ('"\\ud800": 1', "bad_value", 1, 1),
        ("a: .inf", "bad_value", 1, 4),
        ("a: -.INF", "bad_value", 1, 4),
        ("a: .nan", "bad_value", 1, 4),
        ("a: 1e999", "bad_value", 1, 4),
        (f"a: {'9' * 5000}", "bad_value", 1, 4),
        ("[" * 500, "too_deep", 1, 34),
        ("a: " + "[" * 500 + "]" * 500, "too_deep", 1, 36),
    ],
)
def test_text_is_refused_with_its_place(text: str, code: str, line: int, column: int) -> None:
    (found,) = diagnostics(text)
    assert (found.code, found.line, found.column) == (code, line, column)
    assert found.hint


def test_aliases_are_expanded_with_the_positions_of_their_anchor() -> None:
    document, problems = read("a: &x {b: 1}\nc: *x\n")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert problems == []
    assert document.values[("c", "b")] == document.values[("a", "b")]


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = time.monotonic()
    (found,) = diagnostics("\n".join(lines))
    assert found.code == "too_large"
    assert time.monotonic() - began < 5


def test_aliases_cannot_pass_the_limit_of_depth() -> None:
    lines = ["a0: &a0 x"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 5 * MAX_DEPTH)]
    assert [found.code for found in diagnostics("\n".join(lines))] == ["too_deep"]


def test_a_text_that_is_too_long_is_not_read() -> None:
    began = time.monotonic()
    (found,) = diagnostics("a: 1\n" + "#" * MAX_CHARACTERS)
    assert found.code == "too_large"
    assert time.monotonic() - began < 1


def test_both_positions_of_a_duplicate_are_said() -> None:
    document, problems = read("a: 1\nb:\n  c: 1\n  c: 2\n")
    (found,) = document.diagnose(problems)
    assert (found.code, found.path, found.line, found.column) == ("duplicate_field", "b.c", 4, 3)
    assert "line 3, column 3" in found.message
    assert document.data == {"a": 1, "b": {"c": 1}}


def test_json_has_positions_too() -> None:
    text = json.dumps({"tidemark": 1, "name": "BAD", "sources": {}, "sinks": {}}, indent=2)
    _, found = parse(text)
    assert [(one.code, one.path, one.line, one.column) for one in found] == [
        ("bad_id", "name", 3, 11),
        ("missing_field", "sources", 4, 3),
        ("missing_field", "sinks", 5, 3),
    ]


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_the_parser(text: str) -> None:
    definition, found = parse(text)
    assert (definition is None) == any(one.severity == "error" for one in found)


@given(st.text(alphabet="ab:{}[],&*!|>-?'\"% \n\t#0", max_size=60))
@settings(max_examples=500, deadline=None)
def test_no_yaml_like_text_breaks_the_parser(text: str) -> None:
    definition, found = parse(text)
    assert definition is None
    assert found
    assert all(one.line is not None and one.line >= 1 and one.hint for one in found)
