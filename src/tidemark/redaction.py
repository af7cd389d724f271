"""Keeps the values of secrets out of everything that is stored, answered or shown.

A secret is whatever a job takes by `$NAME`. Its name may be shown, its value never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.stored_secrets import REFERENCE, SHORTEST


def names_in(value: Any) -> Iterator[str]:
    """Every `$NAME` in the texts of plain data, once or more often."""
    if isinstance(value, str):
        yield from REFERENCE.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from names_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from names_in(item)


def secrets_of(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that the sources and sinks of a plan take."""
    parts = (*plan["sources"].values(), *plan["sinks"].values())
    return tuple(sorted({name for part in parts for name in names_in(part["options"])}))


@dataclass(frozen=True)
class Redactor:
    """Replaces values by the names they came from, in texts and in all texts of plain data."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Redactor:
        """From values to names. The longest first, so that a value inside another one does not leave half of it."""
        found = {value: name for value, name in values.items() if len(value) >= SHORTEST}
        return cls(dict(sorted(found.items(), key=lambda pair: -len(pair[0]))))

    def text(self, text: str) -> str:
        for value, name in self.values.items():
            text = text.replace(value, f"${name}")
        return text

    def data(self, value: Any) -> Any:
        if not self.values:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value
