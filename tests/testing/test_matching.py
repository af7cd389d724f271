"""Expected rows against actual ones: pairing, comparison by type, and what a difference looks like."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from tidemark.schema import parse_type
from tidemark.testing.matching import Comparison, compare
from tidemark.testing.values import same

TYPES = {name: parse_type(text) for name, text in {"store": "string", "n": "long", "at": "timestamp"}.items()}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def compared(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> Comparison:
    whole = [{"store": None, "n": None, "at": None, **row} for row in actual]
    return compare(expected, whole, TYPES)


def test_order_does_not_matter_and_columns_not_given_are_not_compared() -> None:
    actual = [{"store": "a", "n": 1, "at": NOON}, {"store": "b", "n": 2, "at": NOON}]
    assert compared([{"n": 2}, {"store": "a", "at": "2026-01-01T13:00:00+01:00"}], actual).equal


def test_every_row_is_used_once() -> None:
    assert not compared([{"n": 1}], [{"n": 1}, {"n": 1}]).equal
    assert not compared([{"n": 1}, {"n": 1}], [{"n": 1}]).equal
    assert compared([{"n": 1}, {"n": 1}], [{"n": 1}, {"n": 1}]).equal
    assert not compared([], [{"n": 1}]).equal
    assert compared([], []).equal


def test_a_row_with_few_columns_does_not_take_the_only_match_of_another() -> None:
    actual = [{"store": "a", "n": 1}, {"store": "a", "n": 2}, {"store": "a", "n": 3}]
    expected: list[dict[str, Any]] = [{"store": "a"}, {"store": "a", "n": 1}, {"n": 2}]
    for order in itertools.permutations(expected):
        assert compared(list(order), actual).equal


def test_the_pairing_is_the_largest_there_is() -> None:
    chance = random.Random(7)
    for _ in range(300):
        actual = [{"store": chance.choice("ab"), "n": chance.randint(1, 3)} for _ in range(chance.randint(0, 5))]
        names = [chance.choice([("store",), ("n",), ("store", "n")]) for _ in range(chance.randint(0, 5))]
        whole: list[dict[str, Any]] = [{"store": chance.choice("ab"), "n": chance.randint(1, 3)} for _ in names]
        expected = [{name: row[name] for name in chosen} for row, chosen in zip(whole, names, strict=True)]
        result = compared(expected, actual)
        assert len(expected) - len(result.missing) == _largest_pairing(expected, actual)
        assert len(actual) - len(result.unexpected) == len(expected) - len(result.missing)


def _largest_pairing(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> int:
    """By trying every way."""
    if not expected:
        return 0
    first, rest = expected[0], expected[1:]
    best = _largest_pairing(rest, actual)
    for index, row in enumerate(actual):
        if all(row[name] == value for name, value in first.items()):
            best = max(best, 1 + _largest_pairing(rest, actual[:index] + actual[index + 1 :]))
    return best


def test_a_difference_names_the_rows_and_the_columns() -> None:
    actual = [{"store": "s1", "n": 1, "at": NOON}, {"store": "s9", "n": 7, "at": NOON + timedelta(milliseconds=5)}]
    text = compared([{"store": "s1", "n": 2}], actual).describe("out")
    assert text.splitlines() == [
        "sink out: missing rows: 1, unexpected rows: 2",
        '  missing:    {store: "s1", n: 2}',
        "    nearest:  n is 1",
        '  unexpected: {store: "s1", n: 1}',
        '  unexpected: {store: "s9", n: 7}',
    ]


def test_a_row_that_nothing_resembles_has_no_nearest_one() -> None:
    text = compared([{"store": "s1", "n": 2}], [{"store": "x", "n": 1}]).describe("out")
    assert "nearest" not in text


def test_unexpected_rows_are_shown_whole_when_none_is_expected() -> None:
    text = compared([], [{"store": 'a"b', "at": NOON}]).describe("out")
    assert text.splitlines()[1] == '  unexpected: {store: "a\\"b", n: null, at: "2026-01-01T12:00:00Z"}'


def test_a_long_difference_is_cut() -> None:
    text = compared([{"n": n} for n in range(100, 150)], [{"n": n} for n in range(30)]).describe("out")
    assert "… and 30 more" in text
    assert "… and 10 more" in text
    assert len(text.splitlines()) == 43


@pytest.mark.parametrize(
    ("type_", "expected", "actual"),
    [
        ("string", "é", "é"),
        ("int", 3, 3),
        ("double", 0.1 + 0.2, 0.3),
        ("double", 3, 3.0),
        ("double", "NaN", float("nan")),
        ("double", "Infinity", float("inf")),
        ("float", 0.1, 0.10000000149011612),
        ("decimal(10,2)", 1.5, Decimal("1.50")),
        ("decimal(38,2)", "123456789012345678901234567890.25", Decimal("123456789012345678901234567890.25")),
        ("timestamp", "2026-01-01T12:00:00Z", NOON),
        ("timestamp", "2026-01-01T12:00:00", NOON),
        ("timestamp", NOON.astimezone(timezone(timedelta(hours=5))), NOON),
        ("date", "2026-01-01", date(2026, 1, 1)),
        ("binary", "AP8=", b"\x00\xff"),
        ("boolean", False, False),
        ("string", None, None),
        ("array<timestamp>", ["2026-01-01T12:00:00Z", None], [NOON, None]),
        ("map<string,double>", {"a": 1, "b": None}, {"b": None, "a": 1.0}),
        ("map<long,string>", {"1": "x"}, {1: "x"}),
        ("struct<a:int,b:array<date>>", {"b": ["2026-01-01"]}, {"a": None, "b": [date(2026, 1, 1)]}),
    ],
)
def test_equal_values(type_: str, expected: Any, actual: Any) -> None:
    assert same(expected, actual, parse_type(type_))


@pytest.mark.parametrize(
    ("type_", "expected", "actual"),
    [
        ("string", 5, "5"),
        ("string", "a ", "a"),
        ("string", "", None),
        ("long", None, 0),
        ("long", True, 1),
        ("long", 2.5, 2),
        ("boolean", 1, True),
        ("double", True, 1.0),
        ("double", 1.000001, 1.0),
        ("double", "abc", 1.0),
        ("double", 0, 1e-300),
        ("decimal(10,2)", 1.51, Decimal("1.50")),
        ("decimal(10,2)", "much", Decimal("1.50")),
        ("timestamp", "2026-01-01T12:00:00.000001Z", NOON),
        ("timestamp", "noon", NOON),
        ("timestamp", 5, NOON),
        ("binary", "not base64", b"\x00"),
        ("array<long>", [1, 2], [2, 1]),
        ("array<long>", [1], [1, 1]),
        ("array<string>", "ab", ["a", "b"]),
        ("map<string,long>", {"a": 1}, {"a": 1, "b": 2}),
        ("map<string,long>", ["a"], {"a": 1}),
        ("struct<a:int,b:int>", {"a": 1}, {"a": 1, "b": 2}),
        ("struct<a:int>", {"a": 1, "z": None}, {"a": 1}),
    ],
)
def test_different_values(type_: str, expected: Any, actual: Any) -> None:
    assert not same(expected, actual, parse_type(type_))
