"""Independent readers of what the sinks wrote: plain values, by nothing that the sinks themselves use."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from psycopg import sql
from psycopg.types.json import set_json_loads

from tidemark.compiler.plan.plan import Column
from tidemark.schema import Type, parse_type

NESTED = ("array", "map", "struct")


def read_postgres(url: str, table: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Everything in a table; whatever the session's zone, a point in time is the same one."""
    names = sql.SQL(", ").join(sql.Identifier(column.name) for column in columns)
    with psycopg.connect(url, options="-c timezone=Asia/Kathmandu") as connection:
        set_json_loads(lambda text: json.loads(text, parse_float=Decimal), connection)
        found = connection.execute(sql.SQL("SELECT {} FROM {}").format(names, sql.Identifier(table)))
        return [dict(zip((each.name for each in columns), map(plain_scalar, row), strict=True)) for row in found]


def read_table(path: Path, table: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        names = ", ".join(f'"{column.name}"' for column in columns)
        rows = connection.execute(f'SELECT {names} FROM "{table}"').fetchall()
    return [
        {column.name: stored(value, parse_type(column.type)) for column, value in zip(columns, row, strict=True)}
        for row in rows
    ]


def stored(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.name in NESTED:
        return json.loads(value)
    if type_.name == "decimal":
        assert isinstance(value, str)
        assert "E" not in value
        return Decimal(value)
    if type_.name == "binary":
        return base64.b64encode(value).decode()
    return bool(value) if type_.name == "boolean" else value


def data_files(folder: Path) -> list[Path]:
    """The part files, after checking that a reader would ignore everything else."""
    if not folder.exists():
        return []
    visible = [path for path in folder.rglob("*") if path.is_file() and not is_hidden(path.relative_to(folder))]
    assert all(path.name.startswith("part-") for path in visible), visible
    return sorted(visible)


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.parts)


def read_jsonl(folder: Path, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    rows = []
    for path in data_files(folder):
        text = path.read_bytes().decode()
        assert text.endswith("\n")
        rows += [json.loads(line, parse_float=Decimal) for line in text[:-1].split("\n")]
    return [{column.name: from_json(row[column.name], parse_type(column.type)) for column in columns} for row in rows]


def from_json(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.name in ("float", "double"):
        return float(value)
    return Decimal(value) if type_.name == "decimal" else value


def read_csv(folder: Path, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    rows = []
    for path in data_files(folder):
        header, *lines = csv_records(path.read_bytes().decode())
        assert header == [column.name for column in columns]
        rows += [dict(zip(header, line, strict=True)) for line in lines]
    return [{column.name: from_text(row[column.name], parse_type(column.type)) for column in columns} for row in rows]


def csv_records(text: str) -> Iterator[list[Any]]:
    """RFC 4180, with the difference between nothing and an empty quoted text."""
    record: list[str | None] = []
    position = 0
    while position < len(text):
        if text[position] == '"':
            value, position = _quoted(text, position + 1)
            record.append(value)
        else:
            end = min(end for end in (text.find(",", position), text.find("\n", position)) if end >= 0)
            record.append(text[position:end] or None)
            position = end
        if text[position] == "\n":
            yield record
            record = []
        elif text[position + 1] == "\n":
            record.append(None)
            yield record
            record, position = [], position + 1
        position += 1


def _quoted(text: str, position: int) -> tuple[str, int]:
    value = ""
    while True:
        end = text.index('"', position)
        value += text[position:end]
        if text[end : end + 2] != '""':
            return value, end + 1
        value += '"'
        position = end + 2


def from_text(value: str | None, type_: Type) -> Any:
    if value is None:
        return None
    if type_.name in NESTED:
        return json.loads(value)
    if type_.name == "boolean":
        return {"true": True, "false": False}[value]
    convert = {"int": int, "long": int, "float": float, "double": float, "decimal": Decimal}.get(type_.name, str)
    return convert(value)


def read_parquet(folder: Path, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    rows = [row for path in data_files(folder) for row in pq.ParquetFile(path).read().to_pylist()]
    return [{column.name: plain(row[column.name], parse_type(column.type)) for column in columns} for row in rows]


def plain(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.name == "array":
        return [plain(item, type_.items[0]) for item in value]
    if type_.name == "map":
        return {plain(key, type_.items[0]): plain(item, type_.items[1]) for key, item in value}
    if type_.name == "struct":
        return {name: plain(value[name], item) for name, item in type_.fields}
    return plain_scalar(value)


def plain_scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        fraction = "microseconds" if value.microsecond % 1000 else "milliseconds" if value.microsecond else "seconds"
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=fraction) + "Z"
    return value.isoformat() if isinstance(value, date) else value
