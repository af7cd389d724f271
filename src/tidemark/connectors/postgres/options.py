"""Options of a table in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from tidemark.compiler.definition.model import Text, Texts
from tidemark.compiler.definition.options import SinkOptions, key_problems
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.schema import Type

LONGEST_NAME = 63
_PART = r'"(?:[^"]|"")+"|[^."]+'
_TABLE = re.compile(rf"(?:(?P<schema>{_PART})\.)?(?P<table>{_PART})")


class PostgresSinkOptions(SinkOptions):
    """With a `key` rows replace older ones of the same key, unless `mode: append` says otherwise.

    `table` may name a schema: `sales.orders`. Names mean what they say, capitals included; a part with a dot in it
    stands in double quotes.
    """

    url: Text
    table: Text
    key: Texts = ()
    mode: Literal["upsert", "append"] | None = None

    @property
    def refuses(self) -> bool:
        return True

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        yield from key_problems(self.key, self.mode, columns)
        parts = split_table(self.table)
        if parts is None:
            hint = "Write `table` or `schema.table`, with double quotes around a part that has a dot in it."
            yield Problem("bad_value", f"`{self.table}` is no name of a table", hint, ("table",))
        for name in (*(part for part in parts or () if part), *columns):
            if len(name.encode()) > LONGEST_NAME or "\0" in name:
                hint = f"PostgreSQL takes names of up to {LONGEST_NAME} bytes without NUL: choose another."
                yield Problem("bad_value", f"{name!r} cannot be a name in PostgreSQL", hint, ("table",))


def split_table(text: str) -> tuple[str | None, str] | None:
    """Schema and table; None when the text names neither."""
    found = _TABLE.fullmatch(text)
    if found is None:
        return None
    return (_plain(found["schema"]) if found["schema"] else None), _plain(found["table"])


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
