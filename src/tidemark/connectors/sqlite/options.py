"""Options of a table in a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from tidemark.compiler.definition.model import Text, Texts
from tidemark.compiler.definition.options import SinkOptions, key_problems
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.schema import Type


class SqliteSinkOptions(SinkOptions):
    """With a `key` rows replace older ones of the same key, unless `mode: append` says otherwise."""

    path: Text
    table: Text
    key: Texts = ()
    mode: Literal["upsert", "append"] | None = None

    @property
    def refuses(self) -> bool:
        return True

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        yield from key_problems(self.key, self.mode, columns)
