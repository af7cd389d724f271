"""Rows as Kafka records: the bytes of key and value, made column by column from Arrow batches.

One column in the key is written as its plain text, several as a JSON object. A null key column makes no key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from tidemark.connectors.rendering import json_objects, json_values
from tidemark.schema import Type

_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')
Bytes = Sequence[bytes | None]
Pair = tuple[bytes | None, bytes | None]


class RecordEncoder:
    """From the rows of a batch to (key, value) pairs, in order."""

    def __init__(self, types: Mapping[str, Type], key: Sequence[str], format_: str) -> None:
        self._types = dict(types)
        self._key = {name: types[name] for name in key}
        self._value = VALUES[format_]

    def records(self, batch: pa.RecordBatch) -> Iterator[Pair]:
        return zip(self._keys(batch), self._value(batch, self._columns()), strict=True)

    def _columns(self) -> dict[str, Type]:
        """What the value is made of: a single-column format leaves the key out."""
        if self._value in (_texts, _raw):
            return {name: type_ for name, type_ in self._types.items() if name not in self._key}
        return self._types

    def _keys(self, batch: pa.RecordBatch) -> Bytes:
        if not self._key:
            return [None] * batch.num_rows
        if len(self._key) > 1:
            return json_objects(batch, self._key)
        ((name, type_),) = self._key.items()
        column = batch.column(name)
        return column.to_pylist() if type_.name == "binary" else [_encoded(text) for text in _plain(column, type_)]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _plain(column: pa.Array, type_: Type) -> list[str | None]:
    """The text of each value: that of its JSON, without the quotes around a text."""
    if type_.name == "string":
        values: list[str | None] = column.to_pylist()
        return values
    return [text[1:-1] if text and text.startswith('"') else text for text in json_values(column, type_)]


def _texts(batch: pa.RecordBatch, types: Mapping[str, Type]) -> Bytes:
    (name,) = types
    return [_encoded(value) for value in batch.column(name).to_pylist()]


def _raw(batch: pa.RecordBatch, types: Mapping[str, Type]) -> Bytes:
    (name,) = types
    values: Bytes = batch.column(name).to_pylist()
    return values


def _csv(batch: pa.RecordBatch, types: Mapping[str, Type]) -> Bytes:
    """A line without its end; a null is nothing between the commas, an empty text is quoted."""
    columns = [_plain(batch.column(name), type_) for name, type_ in types.items()]
    return [",".join(map(_cell, row)).encode() for row in zip(*columns, strict=True)]


def _cell(text: str | None) -> str:
    if text is None:
        return ""
    return text if text and not _NEEDS_QUOTES.search(text) else '"' + text.replace('"', '""') + '"'


VALUES: dict[str, Callable[[pa.RecordBatch, Mapping[str, Type]], Bytes]] = {
    "json": lambda batch, types: json_objects(batch, types),
    "csv": _csv,
    "text": _texts,
    "raw": _raw,
}
