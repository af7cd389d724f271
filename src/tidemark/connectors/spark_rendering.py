"""Rows as Spark expressions that render them for a text format, by the rules of `connectors/rendering.py`.

Spark formats timestamps in the session's time zone, which the data plane sets to UTC.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.schema import Type

_NESTED = ("array", "map", "struct")
_KEEP_NULLS = {"ignoreNullFields": "false"}
_SECONDS = "yyyy-MM-dd'T'HH:mm:ss'Z'"
_MILLISECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
_MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


def json_columns(types: dict[str, Type], partition_by: Sequence[str]) -> list[Column]:
    return [_readable(_column(name), type_).alias(name) for name, type_ in types.items()]


def csv_columns(types: dict[str, Type], partition_by: Sequence[str]) -> list[Column]:
    cells = {name: _cell(_column(name), type_) for name, type_ in types.items()}
    body = [name for name in types if name not in partition_by]
    if len(body) == 1:
        # The CSV writer skips a line without any character, and with it a row whose only value is null.
        cells[body[0]] = F.coalesce(cells[body[0]].cast("string"), F.lit(""))
    return [cell.alias(name) for name, cell in cells.items()]


def parquet_columns(types: dict[str, Type], partition_by: Sequence[str]) -> list[Column]:
    return [_column(name) for name in types]


def json_object(types: dict[str, Type]) -> Column:
    """These columns as the text of one JSON object."""
    fields = (_readable(_column(name), type_).alias(name) for name, type_ in types.items())
    return F.to_json(F.struct(*fields), _KEEP_NULLS)


def cell(name: str, type_: Type) -> Column:
    """The column as the text of one value: what CSV shows, and what a key is."""
    return _cell(_column(name), type_).cast("string")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _cell(column: Column, type_: Type) -> Column:
    readable = _readable(column, type_)
    return F.to_json(readable, _KEEP_NULLS) if type_.name in _NESTED else readable


def _readable(column: Column, type_: Type) -> Column:
    """The value with text in place of all that Spark's writers would show in another way, at any depth."""
    if not _shown_otherwise(type_):
        return column
    if type_.name == "timestamp":
        return _iso_timestamp(column)
    if type_.name == "binary":
        return F.replace(F.base64(column), F.lit("\r\n"), F.lit(""))
    if type_.name == "array":
        return F.transform(column, lambda item: _readable(item, type_.items[0]))
    if type_.name == "map":
        values = F.transform_values(column, lambda _, value: _readable(value, type_.items[1]))
        return F.transform_keys(values, lambda key, _: _key_text(key, type_.items[0]))
    fields = (_readable(column.getField(name), item).alias(name) for name, item in type_.fields)
    return F.when(column.isNotNull(), F.struct(*fields))


def _shown_otherwise(type_: Type) -> bool:
    inner = (*type_.items, *(item for _, item in type_.fields))
    return type_.name in ("timestamp", "binary", "map") or any(map(_shown_otherwise, inner))


def _key_text(key: Column, type_: Type) -> Column:
    return _cell(key, type_).cast("string")


def _iso_timestamp(column: Column) -> Column:
    micros = F.unix_micros(column)
    return (
        F.when(micros % 1_000_000 == 0, F.date_format(column, _SECONDS))
        .when(micros % 1_000 == 0, F.date_format(column, _MILLISECONDS))
        .otherwise(F.date_format(column, _MICROSECONDS))
    )
