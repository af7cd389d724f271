"""Tables of the fields of a definition's models, in the words of a user. Used by `generate_docs.py`."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tidemark.compiler.definition.model import Duration, Id, JobName, Key, PositiveDuration, Text, Timestamp
from tidemark.compiler.graph.operators.window_kinds import Every
from tidemark.connectors.kafka.options import Start

Bounds = Ge | Gt | Le | Lt


def _validator(alias: Any) -> object:
    return get_args(alias)[-1].func


# Told apart by what checks them, the last word first: a positive duration is also a duration.
KNOWN = {
    _validator(PositiveDuration): "duration above zero",
    _validator(Duration): "duration",
    _validator(Timestamp): "ISO-8601 time",
    _validator(Id): "id",
    _validator(JobName): "job name",
    _validator(Text): "text",
    _validator(Key): "list of columns, or `{name: expression}`",
    _validator(Every): "duration above zero",
    _validator(Start): "`earliest`, `latest`, `{timestamp: …}` or `{offsets: {topic: {partition: offset}}}`",
}
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "not available yet"}


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def field_table(model: type[BaseModel], skip: Sequence[str] = ()) -> str:
    rows = [row for name, field in model.model_fields.items() if name not in skip for row in _rows(name, field)]
    return table(("field", "value", "default"), rows) if rows else "No fields.\n"


def _rows(name: str, field: FieldInfo, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    written = f"{prefix}{field.alias or name}"
    words = type_words(field.annotation, field.metadata)
    yield f"`{written}`", words, "" if words == PLAIN[Any] else _default(field)
    nested = _model_of(field.annotation)
    if nested is not None:
        for inner, inner_field in nested.model_fields.items():
            yield from _rows(inner, inner_field, f"{written}.")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined or value in ((), {}):
        return "none"
    if isinstance(value, BaseModel):
        return "see its fields"
    return f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"


def _model_of(annotation: Any) -> type[BaseModel] | None:
    options = [annotation, *get_args(annotation)]
    return next((each for each in options if isinstance(each, type) and issubclass(each, BaseModel)), None)


def type_words(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What may stand in a field."""
    for check in reversed(metadata):
        if getattr(check, "func", None) in KNOWN:
            return KNOWN[check.func]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_words(arguments[0], [*annotation.__metadata__])
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(type_words(each) for each in arguments if each is not type(None))
    if origin is tuple:
        return f"list of {type_words(arguments[0])}"
    if origin is dict:
        return f"mapping of {type_words(arguments[0])} to {type_words(arguments[1])}"
    if _model_of(annotation) is not None:
        return "mapping"
    return PLAIN[annotation] + _bounds(metadata)


def _bounds(metadata: Sequence[Any]) -> str:
    limits = [
        each for found in metadata for each in (found, *getattr(found, "metadata", ())) if isinstance(each, Bounds)
    ]
    return "".join(f", {_limit(limit)}" for limit in limits)


def _limit(limit: Bounds) -> str:
    words = {Ge: "at least", Gt: "above", Le: "at most", Lt: "below"}
    value = getattr(limit, type(limit).__name__.lower())
    return f"{words[type(limit)]} {value}"
