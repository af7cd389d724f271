"""What the options of a connector tell the compiler: pure models, no connection is made from here.

A connector's `options.py` holds one model for each direction it has. The compiler asks it for columns and for
problems; the source or sink itself reads the same model when the job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidemark.compiler.definition.model import Model
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.schema import Type

COMPOUND = ("array", "map", "struct")
# The formats whose record is one value, and the type of it.
SINGLE_COLUMN = {"text": "string", "raw": "binary"}


class SourceOptions(Model):
    """The options of a source; paths of problems are relative to the options."""

    @property
    def record_format(self) -> str:
        """How a record is encoded; `columns` when the source gives typed columns by itself."""
        return "columns"

    @property
    def endless(self) -> bool:
        """Whether it makes new events for ever, so that a job that reads it cannot be drained."""
        return False

    def default_schema(self) -> dict[str, str] | None:
        """The schema of a source that names none; None when it must name one."""
        return None

    def computed_columns(self) -> dict[str, str] | None:
        """Columns that are expressions over `n`, the number of the event; None for a source that reads records."""
        return None

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        """What does not fit together, with each other or with the columns."""
        yield from ()

    def planned(self, computed: Mapping[str, str]) -> dict[str, Any]:
        """The options as the source gets them; `computed` is the checked SQL of the computed columns."""
        return self.model_dump(mode="json")


class SinkOptions(Model):
    """The options of a sink; paths of problems are relative to the options."""

    @property
    def refuses(self) -> bool:
        """Whether the target may refuse rows by their content; the sink then has a port `errors` for them."""
        return False

    def problems(self, columns: Mapping[str, Type]) -> Iterator[Problem]:
        """What does not fit together, with each other or with the columns to be written."""
        yield from ()

    def planned(self) -> dict[str, Any]:
        """The options as the sink gets them."""
        return self.model_dump(mode="json")


def missing_columns(names: tuple[str, ...], columns: Mapping[str, Type], field: str) -> Iterator[Problem]:
    """One problem for each name that is not a column."""
    for index, name in enumerate(names):
        if name not in columns:
            hint = hint_for(name, columns, what="columns")
            yield Problem("unknown_column", f"there is no column `{name}` here", hint, (field, index))


def compound_columns(names: tuple[str, ...], columns: Mapping[str, Type], field: str) -> Iterator[Problem]:
    """One problem for each column whose values cannot name a row or a folder."""
    for index, name in enumerate(names):
        if name in columns and columns[name].name in COMPOUND:
            message = f"`{name}` is {columns[name]}, and `{field}` needs plain types"
            yield Problem("wrong_column_type", message, "Choose another column.", (field, index))


def key_problems(key: tuple[str, ...], mode: str | None, columns: Mapping[str, Type]) -> Iterator[Problem]:
    """What is wrong with the key of a table whose rows are replaced by it."""
    yield from missing_columns(key, columns, "key")
    yield from compound_columns(key, columns, "key")
    if mode == "upsert" and not key:
        hint = "Write `key: [column]`, or `mode: append`."
        yield Problem("missing_key", "`mode: upsert` needs the key of the rows it replaces", hint, ("mode",))
    if len(set(key)) < len(key):
        yield Problem("duplicate_field", "the key names a column twice", "Keep one of them.", ("key",))
