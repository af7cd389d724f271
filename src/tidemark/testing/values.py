"""Whether a value that a test expects is the value that a job wrote, by the type of the column; and how to show it."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from tidemark.compiler.definition.model import instant
from tidemark.schema import STRING, Type

_CLOSE = 1e-9


def same(expected: Any, actual: Any, type_: Type) -> bool:
    """Compares what stands in a test, text and numbers, with a typed value. What cannot be read as the type differs."""
    if expected is None or actual is None:
        return expected is None and actual is None
    try:
        return _SAME[type_.name](expected, actual, type_)
    except (ValueError, TypeError, AttributeError, InvalidOperation):
        return False


def _identical(expected: Any, actual: Any, type_: Type) -> bool:
    """A boolean is no number here, though Python thinks so."""
    return type(expected) is type(actual) and bool(expected == actual)


def _number(expected: Any, actual: float, type_: Type) -> bool:
    if isinstance(expected, bool):
        return False
    wanted = float(expected)
    return (math.isnan(wanted) and math.isnan(actual)) or math.isclose(wanted, actual, rel_tol=_CLOSE)


def _decimal(expected: Any, actual: Decimal, type_: Type) -> bool:
    return not isinstance(expected, bool) and Decimal(str(expected)) == actual


def _timestamp(expected: Any, actual: datetime, type_: Type) -> bool:
    return bool((expected if isinstance(expected, datetime) else instant(expected)) == actual)


def _date(expected: Any, actual: date, type_: Type) -> bool:
    return bool((expected if isinstance(expected, date) else date.fromisoformat(expected)) == actual)


def _binary(expected: Any, actual: bytes, type_: Type) -> bool:
    return bool((expected if isinstance(expected, bytes) else base64.b64decode(expected, validate=True)) == actual)


def _array(expected: Any, actual: list[Any], type_: Type) -> bool:
    if isinstance(expected, str) or len(expected) != len(actual):
        return False
    return all(same(left, right, type_.items[0]) for left, right in zip(expected, actual, strict=True))


def _map(expected: Mapping[Any, Any], actual: Mapping[Any, Any], type_: Type) -> bool:
    """The keys of a mapping in a test are text; each must stand for one key of the value."""
    if len(expected) != len(actual):
        return False
    key, item = type_.items
    return all(
        any(_same_key(name, found, key) and same(value, actual[found], item) for found in actual)
        for name, value in expected.items()
    )


def _same_key(expected: Any, actual: Any, type_: Type) -> bool:
    as_text = isinstance(expected, str) and type_ != STRING and expected == shown(actual).strip('"')
    return as_text or same(expected, actual, type_)


def _struct(expected: Mapping[str, Any], actual: Mapping[str, Any], type_: Type) -> bool:
    """A field that the test leaves out must be null."""
    names = [name for name, _ in type_.fields]
    return set(expected) <= set(names) and all(
        same(expected.get(name), actual.get(name), item) for name, item in type_.fields
    )


_SAME: dict[str, Callable[[Any, Any, Type], bool]] = {
    "string": _identical,
    "boolean": _identical,
    "int": _identical,
    "long": _identical,
    "float": lambda expected, actual, type_: _number(expected, actual, type_) or _as_float32(expected, actual),
    "double": _number,
    "decimal": _decimal,
    "timestamp": _timestamp,
    "date": _date,
    "binary": _binary,
    "array": _array,
    "map": _map,
    "struct": _struct,
}


def _as_float32(expected: Any, actual: float) -> bool:
    """0.1 in a test is the float nearest to it."""
    return not isinstance(expected, bool) and math.isclose(float(expected), actual, rel_tol=2**-23)


def shown(value: Any) -> str:
    """A value the way a test would write it."""
    if isinstance(value, datetime):
        return f'"{_iso(value)}"'
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode("ascii")}"'
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        return shown_row(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(shown(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)


def shown_row(row: Mapping[Any, Any]) -> str:
    return f"{{{', '.join(f'{_name(name)}: {shown(value)}' for name, value in row.items())}}}"


def _name(name: Any) -> str:
    return name if isinstance(name, str) else shown(name)


def _iso(value: datetime) -> str:
    timespec = "auto" if value.microsecond % 1000 else "milliseconds" if value.microsecond else "seconds"
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
