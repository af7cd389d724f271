"""Rows as Kafka records: the bytes of key and value, made column by column from Arrow batches.

One column in the key is written as its plain text, several as a JSON object. A null key column makes no key. What
cannot be a record of the topic is said before it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from tidemark.connectors.refusal import Refusal
from tidemark.connectors.rendering import json_objects, json_values
from tidemark.record_errors import RowError
from tidemark.schema import Type

# What Kafka adds to key and value at most: the header of a batch, and lengths and times in front of the record.
OVERHEAD = 61 + 37
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

    def fitting(self, batch: pa.RecordBatch, largest: int) -> list[Pair] | Refusal:
        """All of the batch as records of at most `largest` bytes, or why a row of it cannot be one."""
        for name in self._types:
            if not _is_text(batch.column(name)):
                return Refusal(RowError.BAD_TEXT, f"column `{name}` holds a text that is not UTF-8")
        records = list(self.records(batch))
        size = OVERHEAD + max((len(key or b"") + len(value or b"") for key, value in records), default=0)
        if size <= largest:
            return records
        return Refusal(RowError.TOO_LARGE, f"the record has {size} bytes, and the topic takes {largest}")

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


def _is_text(column: pa.Array) -> bool:
    """Whether every text in it is UTF-8, which Spark does not promise; other values always are what they seem."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


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
