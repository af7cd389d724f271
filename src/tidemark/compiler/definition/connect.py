"""Which connector a source or sink names, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tidemark.compiler.definition.model import Model
from tidemark.compiler.definition.shape import check_shape
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import listed
from tidemark.connectors.catalogue import BY_NAME, SINKS, SOURCES

Direction = Literal["source", "sink"]
_USABLE = {"source": SOURCES, "sink": SINKS}


@dataclass(frozen=True)
class Connected:
    """`options` is None for a connector that is still to come."""

    connector: str
    options: Model | None


def without_connectors(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in BY_NAME}


def connect(
    data: dict[str, Any], path: Path, direction: Direction, known: list[str]
) -> tuple[Connected | None, list[Problem]]:
    """The connector that `data` names; `known` are the fields that may stand beside it."""
    named = [name for name in data if name in BY_NAME]
    if len(named) > 1:
        message = f"a {direction} has one connector, and this one names {' and '.join(named)}"
        return None, [Problem("several_connectors", message, "Keep one of them.", (*path, named[1]), at_key=True)]
    if not named:
        return None, _missing(data, path, direction, known)
    if named[0] not in _USABLE[direction]:
        hint = listed(_USABLE[direction], what=f"connectors of a {direction}")
        message = f"{named[0]} cannot be a {direction}"
        return None, [Problem("wrong_connector", message, hint, (*path, named[0]), at_key=True)]
    return _options(named[0], data[named[0]], (*path, named[0]), direction)


def _missing(data: dict[str, Any], path: Path, direction: Direction, known: list[str]) -> list[Problem]:
    """Nothing when an unknown field is there: that one is reported, and is likely the connector misspelt."""
    if any(name not in known for name in data):
        return []
    hint = listed(_USABLE[direction], what="connectors")
    return [Problem("missing_connector", f"this {direction} names no connector", hint, path, at_key=True)]


def _options(name: str, data: object, path: Path, direction: Direction) -> tuple[Connected | None, list[Problem]]:
    connector = BY_NAME[name]
    model: type[Model] | None = connector.source if direction == "source" else connector.sink
    if model is None:
        ready = [other.name for other in BY_NAME.values() if (other.source if direction == "source" else other.sink)]
        hint = listed(ready, what=f"connectors of a {direction}")
        problem = Problem("not_available", f"the {direction} {name} is not available yet", hint, path, at_key=True)
        return Connected(name, None), [problem]
    options, problems = check_shape(model, data, path)
    return (Connected(name, options) if options else None), problems
