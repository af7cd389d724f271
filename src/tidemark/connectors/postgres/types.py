"""How column types look in PostgreSQL: declared, accepted in an existing table, and as text for COPY."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.connectors.rendering import json_values
from tidemark.schema import SYSTEM_COLUMNS, Type

_DECLARED = {
    "string": "text",
    "int": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "binary": "bytea",
    "timestamp": "timestamptz",
    "array": "jsonb",
    "map": "jsonb",
    "struct": "jsonb",
}
_INTEGERS = ("int2", "int4", "int8", "numeric")
_JSON = ("jsonb", "json", "text", "varchar")
# Names as in pg_type. What can be too narrow for one value is accepted: that value's row is refused, not the table.
ACCEPTED: dict[str, tuple[str, ...]] = {
    "string": ("text", "varchar", "bpchar", "citext", "name", "uuid", "json", "jsonb", "inet", "cidr", "macaddr"),
    "int": _INTEGERS,
    "long": _INTEGERS,
    "float": ("float4", "float8", "numeric"),
    "double": ("float8", "numeric"),
    "boolean": ("bool",),
    "date": ("date",),
    "binary": ("bytea",),
    "decimal": ("numeric",),
    "timestamp": ("timestamptz", "timestamp"),
    "array": _JSON,
    "map": _JSON,
    "struct": _JSON,
}
# What the engine itself writes about an event: a NUL in it must not be the reason to lose the row it describes.
_LABELS = frozenset((*(name for name, _ in SYSTEM_COLUMNS), "_error"))
_NUL_SIGN = "\N{SYMBOL FOR NULL}"
_ESCAPE = re.compile(r"\\(u0000|.)")
_BETWEEN, _NOTHING, _AFTER = (pa.scalar(text, pa.large_string()) for text in ("\t", "", "\n"))
_YEAR = re.compile(r"(-?\d+)(-.*)")
_FIRST_YEAR_MICROS = -62_135_596_800_000_000
_FIRST_YEAR_DAYS = -719_162
_NUMERIC_MODIFIER_OFFSET = 4


def declared(type_: Type) -> str:
    """The type of a new column."""
    if type_.name == "decimal":
        return f"numeric({type_.precision},{type_.scale})"
    return _DECLARED[type_.name]


def accepts(type_: Type, existing: str, kind: str, modifier: int) -> bool:
    """Whether an existing column, of that name, kind and modifier in pg_type, keeps every value it takes."""
    if kind == "e":
        return type_.name == "string"
    if existing not in ACCEPTED[type_.name]:
        return False
    if existing == "numeric" and modifier >= _NUMERIC_MODIFIER_OFFSET:
        return type_.name in ("int", "long") or (type_.name == "decimal" and _scale(modifier) >= type_.scale)
    return True


def _scale(modifier: int) -> int:
    """Eleven bits, signed, as numeric stores them."""
    scale = (modifier - _NUMERIC_MODIFIER_OFFSET) & 0x7FF
    return scale - 0x800 if scale & 0x400 else scale


def copy_text(chunk: pa.RecordBatch, types: Iterable[tuple[str, Type]]) -> memoryview:
    """The rows in the text format of COPY: made column by column, so that no row is touched by Python."""
    fields = [_fields(chunk.column(name), type_, name in _LABELS) for name, type_ in types]
    lines = pc.binary_join_element_wise(*fields, _BETWEEN, null_handling="replace", null_replacement="\\N")
    ended = pc.binary_join_element_wise(lines, _NOTHING, _AFTER)
    return memoryview(ended.buffers()[2])[: pc.sum(pc.binary_length(ended)).as_py()]


def _fields(column: pa.Array, type_: Type, label: bool) -> pa.Array:
    text = _TEXTS.get(type_.name, _plain)(column, type_)
    if label:
        text = _without_nul(text, type_)
    return _escaped(text) if type_.name in _ESCAPED else text


def _plain(column: pa.Array, type_: Type) -> pa.Array:
    return column.cast(pa.large_string())


def _timestamps(column: pa.Array, type_: Type) -> pa.Array:
    """Without a zone: the session's is UTC."""
    micros = column.cast(pa.int64())
    text = micros.cast(pa.timestamp("us")).cast(pa.string()).cast(pa.large_string())
    return _before_christ(text) if (pc.min(micros).as_py() or 0) < _FIRST_YEAR_MICROS else text


def _dates(column: pa.Array, type_: Type) -> pa.Array:
    text = column.cast(pa.string()).cast(pa.large_string())
    return _before_christ(text) if (pc.min(column.cast(pa.int32())).as_py() or 0) < _FIRST_YEAR_DAYS else text


def _before_christ(text: pa.Array) -> pa.Array:
    """Arrow counts a year 0 and years before it, PostgreSQL has 1 BC and those before it."""

    def counted(value: str | None) -> str | None:
        found = _YEAR.fullmatch(value) if value else None
        if found is None or int(found[1]) > 0:
            return value
        return f"{1 - int(found[1]):04}{found[2]} BC"

    return pa.array([counted(value) for value in text.to_pylist()], pa.large_string())


def _bytes(column: pa.Array, type_: Type) -> pa.Array:
    return pa.array(
        [None if value is None else f"\\\\x{value.hex()}" for value in column.to_pylist()], pa.large_string()
    )


def _json(column: pa.Array, type_: Type) -> pa.Array:
    return pa.array(json_values(column, type_), pa.large_string())


def _without_nul(text: pa.Array, type_: Type) -> pa.Array:
    if type_.name == "string":
        return pc.replace_substring(text, "\0", _NUL_SIGN)
    if type_.name != "map":
        return text
    shown = [None if value is None else _ESCAPE.sub(_shown_nul, value) for value in text.to_pylist()]
    return pa.array(shown, pa.large_string())


def _shown_nul(escape: re.Match[str]) -> str:
    return _NUL_SIGN if escape[1] == "u0000" else escape[0]


def _escaped(text: pa.Array) -> pa.Array:
    for character, escape in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        if pc.any(pc.match_substring(text, character)).as_py():
            text = pc.replace_substring(text, character, escape)
    return text


_ESCAPED = ("string", "array", "map", "struct")
_TEXTS: dict[str, Callable[[pa.Array, Type], pa.Array]] = {
    "timestamp": _timestamps,
    "date": _dates,
    "binary": _bytes,
    "array": _json,
    "map": _json,
    "struct": _json,
}
