"""Checks plain data against a model and says what is wrong in the user's words.

The one place that knows the error types of the validation library.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidemark.compiler.definition.model import Model
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import hint_for

AnyModel = TypeVar("AnyModel", bound=Model)

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
    "model_attributes_type": "a mapping of names to values",
    "list_type": "a list",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def check_shape(
    model: type[AnyModel], data: object, path: Path, *, others: Iterable[str] = ()
) -> tuple[AnyModel | None, list[Problem]]:
    """The model's instance and every problem; `others` are fields that are known but read elsewhere.

    With problems, the instance is what is left without the fields that have them, so that the rest can be looked at;
    None when nothing useful is left.
    """
    given = {} if data is None else data
    try:
        return model.model_validate(given), []
    except ValidationError as error:
        found, names = error.errors(include_url=False), [*field_names(model), *others]
        return _rest(model, given, found), [_problem(each, model, names).below(*path) for each in found]


def _rest(model: type[AnyModel], data: object, found: list[ErrorDetails]) -> AnyModel | None:
    """The instance without what is wrong; a field that is missing cannot be left out."""
    rest = deepcopy(data)
    for each in found:
        *outer, last = each["loc"] or (None,)
        place: Any = rest
        for part in outer:
            place = place.get(part) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last not in place:
            return None
        del place[last]
    try:
        return model.model_validate(rest)
    except ValidationError:
        return None


def field_names(model: type[Model]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def kind_of(value: object) -> str:
    """What a value is, as the user would call it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float)):
        return "a number"
    return "a mapping" if isinstance(value, dict) else "a list"


def _problem(found: ErrorDetails, model: type[Model], names: list[str]) -> Problem:
    kind, path = found["type"], tuple(found["loc"])
    if kind == "missing":
        return Problem("missing_field", f"`{path[-1]}` is missing", f"Add `{path[-1]}: …`.", path)
    if kind == "extra_forbidden":
        return _unknown(path, names if len(path) == 1 else _names_at(model, path))
    if kind in _EXPECTED:
        return _wrong_type(_EXPECTED[kind], found["input"], path)
    if kind == "literal_error":
        return _not_one_of(found, path)
    if kind in _BOUNDS:
        return _out_of_bounds(found, path)
    if "hint" in found.get("ctx", {}):
        return Problem(kind, found["ctx"]["message"], found["ctx"]["hint"], path)
    if kind == "too_short":
        return _too_short(found, path)
    return Problem("bad_value", f"{_field(path)}: {found['msg']}", "See the reference of this field.", path)


def _names_at(model: type[Model], path: Path) -> list[str]:
    """The fields of the model that an inner path leads to."""
    current: Any = model
    for part in path[:-1]:
        field = next((item for name, item in current.model_fields.items() if part in (name, item.alias)), None)
        inner = field.annotation if field else None
        models = [option for option in (inner, *getattr(inner, "__args__", ())) if _is_model(option)]
        if not models:
            return []
        current = models[0]
    return field_names(current)


def _is_model(option: object) -> bool:
    return isinstance(option, type) and issubclass(option, Model)


def _unknown(path: Path, names: list[str]) -> Problem:
    name = str(path[-1])
    return Problem(
        "unknown_field", f"there is no field `{name}` here", hint_for(name, names, what="fields"), path, at_key=True
    )


def _wrong_type(expected: str, value: object, path: Path) -> Problem:
    hint = (
        "Write it in quotes."
        if expected == "text" and kind_of(value) in ("a number", "true or false")
        else f"Write {expected}."
    )
    return Problem("wrong_type", f"{_field(path)} must be {expected}, not {kind_of(value)}", hint, path)


def _not_one_of(found: ErrorDetails, path: Path) -> Problem:
    choices = found["ctx"]["expected"].replace("'", "")
    hint = f"Write {choices}."
    return Problem("bad_value", f"{_field(path)} cannot be `{found['input']}`", hint, path)


def _out_of_bounds(found: ErrorDetails, path: Path) -> Problem:
    limit, words = _BOUNDS[found["type"]]
    bound = found["ctx"][limit]
    message = f"{_field(path)} must be {words} {bound}, and is {found['input']}"
    return Problem("bad_value", message, f"Choose a number {words} {bound}.", path)


def _too_short(found: ErrorDetails, path: Path) -> Problem:
    least, actual = found["ctx"]["min_length"], found["ctx"]["actual_length"]
    message = f"{_field(path)} needs {least} or more entries, and has {actual}"
    return Problem("bad_value", message, "Add what is missing.", path)


def _field(path: Path) -> str:
    names = [part for part in path if isinstance(part, str)]
    return f"`{names[-1]}`" if names else "this"
