"""What a reader of committed records sees in a topic, as rows of plain values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from connectors.sink_readers import csv_records, from_json, from_text

from tidemark.compiler.plan.plan import Column
from tidemark.schema import parse_type
from tidemark.testing.kafka_topics import Topics


def read_json_topic(topics: Topics, topic: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    rows = [json.loads(record.value or b"", parse_float=Decimal) for record in topics.read(topic)]
    return [{column.name: from_json(row[column.name], parse_type(column.type)) for column in columns} for row in rows]


def read_csv_topic(topics: Topics, topic: str, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    texts = [(record.value or b"").decode() + "\n" for record in topics.read(topic)]
    rows = [record for text in texts for record in csv_records(text)]
    types = {column.name: parse_type(column.type) for column in columns}
    return [
        {name: from_text(value, type_) for (name, type_), value in zip(types.items(), row, strict=True)} for row in rows
    ]
