"""Values outside Spark: fractions of seconds, times beyond Python's own, numbers JSON does not know."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidemark.connectors.rendering import column_values, iso_timestamps, json_values
from tidemark.schema import parse_type

YEAR_10000 = 253_402_300_800_000_000
CASES: tuple[tuple[int | None, str | None], ...] = (
    (0, "1970-01-01T00:00:00Z"),
    (1, "1970-01-01T00:00:00.000001Z"),
    (-1, "1969-12-31T23:59:59.999999Z"),
    (-1_000, "1969-12-31T23:59:59.999Z"),
    (-1_000_000, "1969-12-31T23:59:59Z"),
    (1_500_000, "1970-01-01T00:00:01.500Z"),
    (None, None),
    (YEAR_10000, "10000-01-01T00:00:00Z"),
)


def times(*micros: int | None) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", tz="UTC"))


def test_a_column_mixes_the_lengths_of_fractions() -> None:
    assert iso_timestamps(times(*(micros for micros, _ in CASES))).to_pylist() == [text for _, text in CASES]


@pytest.mark.parametrize(("micros", "text"), CASES)
def test_a_timestamp_looks_the_same_alone_and_inside_a_nested_value(micros: int | None, text: str | None) -> None:
    assert column_values(times(micros), parse_type("timestamp")) == [text]
    nested = pa.StructArray.from_arrays([times(micros)], ["t"])
    assert json_values(nested, parse_type("struct<t:timestamp>")) == [json.dumps({"t": text}, separators=(",", ":"))]


def test_no_rows_and_only_nulls_are_columns_too() -> None:
    assert iso_timestamps(times()).to_pylist() == []
    assert iso_timestamps(times(None, None)).to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("array<double>", [float("nan"), float("inf"), float("-inf"), 1e22], '["NaN","Infinity","-Infinity",1e+22]'),
        ("array<boolean>", [True, False, None], "[true,false,null]"),
        ("array<string>", ['"\n\0é'], '["\\"\\n\\u0000é"]'),
        ("map<int,string>", [(1, "a")], '{"1":"a"}'),
        ("map<string,int>", [('"', None)], '{"\\"":null}'),
    ],
)
def test_nested_values_are_json(type_: str, value: Any, text: str) -> None:
    arrow = {
        "array<double>": pa.list_(pa.float64()),
        "map<int,string>": pa.map_(pa.int32(), pa.string()),
        "map<string,int>": pa.map_(pa.string(), pa.int32()),
    }
    (rendered,) = json_values(pa.array([value], arrow.get(type_)), parse_type(type_))
    assert rendered == text
    json.loads(text)


def test_small_decimals_are_written_out() -> None:
    column = pa.array([Decimal("1E-10"), Decimal("-5")], pa.decimal128(20, 10))
    assert column_values(column, parse_type("decimal(20,10)")) == ["0.0000000001", "-5.0000000000"]
