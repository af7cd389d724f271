"""How values look outside Spark: ISO-8601 UTC timestamps with `Z`, base64 binary, JSON text for nested values.

Works on Arrow columns, column by column where Arrow can. The same rules as Spark expressions, for sinks whose files
Spark writes itself, live with those sinks.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.schema import Type

_EPOCH = datetime(1970, 1, 1)
# What cannot stand in a JSON string as it is.
_TO_ESCAPE = r'["\\\x00-\x1f\x7f]'
_SECOND, _MILLISECOND = 1_000_000, 1_000


def column_values(column: pa.Array, type_: Type) -> list[Any]:
    """The column as values a database binding takes: text, int, float, bytes or None."""
    render = _COLUMN_VALUES.get(type_.name)
    return render(column, type_) if render else column.to_pylist()


def json_values(column: pa.Array, type_: Type) -> list[str | None]:
    """The column as JSON text, value by value; None stays None."""
    values = column.cast(_countable(column.type)).to_pylist()
    return [None if value is None else json_text(value, type_) for value in values]


def json_objects(batch: pa.RecordBatch, types: Mapping[str, Type]) -> list[bytes]:
    """Each row as one JSON object of these columns, in their order; a null is written as null."""
    parts: list[Any] = []
    for index, (name, type_) in enumerate(types.items()):
        parts.append(_constant(f"{',' if index else '{'}{json.dumps(name, ensure_ascii=False)}:"))
        parts.append(_json_texts(batch.column(name), type_))
    rows = pc.binary_join_element_wise(*parts, _constant("}"), _constant(""))
    values: list[bytes] = rows.cast(pa.large_binary()).to_pylist()
    return values


def _json_texts(column: pa.Array, type_: Type) -> pa.Array:
    """The JSON of a column in Arrow: by Arrow itself where it can, many times faster than value by value."""
    if type_.name in ("int", "long", "boolean"):
        texts = column.cast(pa.large_string())
    elif type_.name == "timestamp":
        texts = _in_quotes(iso_timestamps(column))
    elif type_.name == "date" or (type_.name == "string" and not _has_to_be_escaped(column)):
        texts = _in_quotes(column)
    else:
        texts = pa.array(json_values(column, type_), pa.large_string())
    return pc.fill_null(texts, "null")


def _in_quotes(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string()).cast(pa.large_string())
    return pc.binary_join_element_wise(_constant('"'), texts, _constant('"'), _constant(""))


def _has_to_be_escaped(column: pa.Array) -> bool:
    found: bool | None = pc.any(pc.match_substring_regex(column, _TO_ESCAPE)).as_py()
    return bool(found)


def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def json_text(value: Any, type_: Type) -> str:
    """One value as JSON. Timestamps and dates come as microseconds and days since 1970, maps as pairs."""
    return "null" if value is None else _JSON[type_.name](value, type_)


def iso_timestamps(column: pa.Array) -> pa.Array:
    """Timestamps, or microseconds since 1970, as text: no fraction when it is zero, else 3 or 6 digits."""
    micros = column.cast(pa.int64())
    whole_seconds = _divisible(micros, _SECOND)
    if pc.all(whole_seconds).as_py() is not False:
        return _iso(micros, "s")
    milliseconds_or_less = pc.if_else(_divisible(micros, _MILLISECOND), _iso(micros, "ms"), _iso(micros, "us"))
    return pc.if_else(whole_seconds, _iso(micros, "s"), milliseconds_or_less)


def _divisible(micros: pa.Array, unit: int) -> pa.Array:
    return pc.equal(pc.multiply(pc.divide(micros, unit), unit), micros)


def _iso(micros: pa.Array, unit: str) -> pa.Array:
    text = micros.cast(pa.timestamp("us")).cast(pa.timestamp(unit), safe=False).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(text, " ", "T"), "Z", "")


def _countable(type_: pa.DataType) -> pa.DataType:
    """The type with times as plain numbers, because Python's own times end with the year 9999."""
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_date(type_):
        return pa.int32()
    if pa.types.is_map(type_):
        return pa.map_(_countable(type_.key_type), type_.item_field.with_type(_countable(type_.item_type)))
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_countable(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_countable(field.type)) for field in type_.fields])
    return type_


def _json_string(value: str, type_: Type) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_float(value: float, type_: Type) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _json_timestamp(micros: int, type_: Type) -> str:
    timespec = "microseconds" if micros % _MILLISECOND else "milliseconds" if micros % _SECOND else "seconds"
    try:
        text = (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec=timespec) + "Z"
    except OverflowError:
        text = iso_timestamps(pa.array([micros], pa.int64()))[0].as_py()
    return f'"{text}"'


def _json_date(days: int, type_: Type) -> str:
    try:
        text = (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        text = pa.scalar(days, pa.date32()).cast(pa.string()).as_py()
    return f'"{text}"'


def _json_array(value: list[Any], type_: Type) -> str:
    return f"[{','.join(json_text(item, type_.items[0]) for item in value)}]"


def _json_map(value: list[tuple[Any, Any]], type_: Type) -> str:
    key_type, item_type = type_.items
    return _json_object((_json_key(key, key_type), json_text(item, item_type)) for key, item in value)


def _json_struct(value: Mapping[str, Any], type_: Type) -> str:
    return _json_object(
        (json.dumps(name, ensure_ascii=False), json_text(value[name], item)) for name, item in type_.fields
    )


def _json_object(members: Any) -> str:
    return "{" + ",".join(f"{key}:{value}" for key, value in members) + "}"


def _json_key(value: Any, type_: Type) -> str:
    text = json_text(value, type_)
    return text if text.startswith('"') else json.dumps(text, ensure_ascii=False)


def _integers(column: pa.Array, type_: Type) -> list[int | None]:
    values: list[int | None] = column.cast(pa.int8()).to_pylist()
    return values


def _timestamps(column: pa.Array, type_: Type) -> list[str | None]:
    values: list[str | None] = iso_timestamps(column).to_pylist()
    return values


def _dates(column: pa.Array, type_: Type) -> list[str | None]:
    values: list[str | None] = column.cast(pa.string()).to_pylist()
    return values


def _decimals(column: pa.Array, type_: Type) -> list[str | None]:
    return [None if value is None else _plain_decimal(value, type_) for value in column.to_pylist()]


def _plain_decimal(value: Decimal, type_: Type) -> str:
    return format(value, "f")


_COLUMN_VALUES: dict[str, Callable[[pa.Array, Type], list[Any]]] = {
    "boolean": _integers,
    "timestamp": _timestamps,
    "date": _dates,
    "decimal": _decimals,
    "array": json_values,
    "map": json_values,
    "struct": json_values,
}
_JSON: dict[str, Callable[[Any, Type], str]] = {
    "string": _json_string,
    "int": lambda value, _: str(value),
    "long": lambda value, _: str(value),
    "float": _json_float,
    "double": _json_float,
    "boolean": lambda value, _: "true" if value else "false",
    "decimal": _plain_decimal,
    "timestamp": _json_timestamp,
    "date": _json_date,
    "binary": lambda value, _: f'"{base64.b64encode(value).decode("ascii")}"',
    "array": _json_array,
    "map": _json_map,
    "struct": _json_struct,
}
