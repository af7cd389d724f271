"""The words in which the function tables are written: what a parameter accepts and what type a call has.

An entry is data. A function is in a table only if no row can make it fail: what Spark would throw at run time is
excluded by what a parameter accepts, or by the `sql` that stands in for the plain call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidemark.compiler.graph.expression.literals import ISO_TIMESTAMP
from tidemark.compiler.graph.expression.result import Checked, Refusal
from tidemark.compiler.graph.expression.type_rules import arithmetic, atomic, common_type_of, contains, orderable, whole
from tidemark.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array_of,
    decimal,
)

MAX_COUNT = 10_000
Arguments = Sequence[Checked]
ResultRule = Callable[[Arguments], Type]


@dataclass(frozen=True)
class Parameter:
    """One place of a call. `constant` asks for a literal; `binds` for a lambda, and gives its parameters' types;
    `words` for one of these bare words, each with the SQL that stands for it; `as_moment` turns a date into a
    timestamp, which Spark would do too, but not without failing for dates far outside of its range."""

    label: str
    accepts: Callable[[Type], bool]
    optional: bool = False
    repeated: bool = False
    constant: Callable[[object], bool] | None = None
    binds: Callable[[Arguments], tuple[Type, ...]] | None = None
    least_names: int = 1
    as_moment: bool = False
    words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Function:
    """A scalar function. `result` is its type or a rule; `sql` is what Spark gets when it is not the plain call.

    `deterministic` is false when a replay of the same row would give another value.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Type | ResultRule
    doc: str
    example: str
    deterministic: bool = True
    sql: str | None = None

    def type_of(self, arguments: Arguments) -> Type:
        return self.result if isinstance(self.result, Type) else self.result(arguments)


def _is(*types: Type) -> Callable[[Type], bool]:
    return lambda type_: type_ in types or type_ == NULL


def _named(name: str) -> Callable[[Type], bool]:
    return lambda type_: type_.name == name


TEXT = Parameter("text", _is(STRING))
BYTES = Parameter("text or binary", _is(STRING, BINARY))
BINARY_VALUE = Parameter("binary", _is(BINARY))
NUMBER = Parameter("a number", lambda type_: type_.numeric)
FLOATING = Parameter("a float or double", _is(FLOAT, DOUBLE))
WHOLE = Parameter("an int or long", lambda type_: whole(type_))
INTEGER = Parameter("an int", _is(INT))
CONDITION = Parameter("a condition", _is(BOOLEAN))
DAY = Parameter("a date or timestamp", _is(DATE, TIMESTAMP))
MOMENT = Parameter("a timestamp", _is(TIMESTAMP))
DAY_AS_MOMENT = Parameter("a date or timestamp", _is(DATE, TIMESTAMP), as_moment=True)
DATE_ONLY = Parameter("a date", _is(DATE))
READABLE_TIME = Parameter("text, a date or a timestamp", _is(STRING, DATE, TIMESTAMP))
ANY = Parameter("a value", lambda type_: type_.name != "interval")
ATOM = Parameter("a simple value", lambda type_: atomic(type_) or type_ == NULL)
COMPARABLE = Parameter("a value that can be compared", orderable)
ARRAY = Parameter("an array", _named("array"))
MAP = Parameter("a map", _named("map"))
STRUCTURED = Parameter("an array, map or struct", lambda type_: type_.name in ("array", "map", "struct"))
TEXTS = Parameter("an array of text", lambda type_: type_ == array_of(STRING))
TEXT_OR_TEXTS = Parameter("text or an array of text", lambda type_: type_ in (STRING, NULL, array_of(STRING)))
CONCATENATED = Parameter("text, an array or another value", lambda type_: atomic(type_) or type_.name == "array")


def optional(parameter: Parameter) -> Parameter:
    return replace(parameter, optional=True)


def many(parameter: Parameter) -> Parameter:
    """One or more."""
    return replace(parameter, repeated=True)


def constant(parameter: Parameter, label: str, allows: Callable[[object], bool] = lambda value: True) -> Parameter:
    return replace(parameter, label=label, constant=allows)


def function_of(label: str, binds: Callable[[Arguments], tuple[Type, ...]], *, least: int = 1) -> Parameter:
    return Parameter(label, lambda type_: type_ != NULL, binds=binds, least_names=least)


def word(label: str, words: tuple[tuple[str, str], ...]) -> Parameter:
    return Parameter(label, lambda type_: True, words=words)


def _between(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and low <= value <= high


PATTERN = constant(TEXT, "a regular expression in quotes")
COUNT = constant(INTEGER, f"a constant from 0 to {MAX_COUNT}", _between(0, MAX_COUNT))
PLACES = constant(INTEGER, "a constant from -38 to 38", _between(-38, 38))
POSITION = constant(INTEGER, "a constant other than 0", lambda value: value != 0)
GROUP = constant(INTEGER, "a constant from 0 to 100", _between(0, 100))
MONTHS = constant(INTEGER, "a constant from -1200 to 1200", _between(-1200, 1200))

_LENGTHS = {"G": 4, "y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "a": 1, "h": 2, "H": 2, "k": 2, "K": 2, "m": 2, "s": 2}
_READ_LENGTHS = {**_LENGTHS, "S": 9, "z": 4, "X": 5, "x": 5}
_WRITE_LENGTHS = {**_READ_LENGTHS, "E": 4, "Q": 4, "q": 4}


def _time_format(lengths: dict[str, int]) -> Callable[[object], bool]:
    def allows(value: object) -> bool:
        plain = re.sub(r"'[^']*'", "", str(value))
        runs = [match.group() for match in re.finditer(r"([A-Za-z])\1*", plain)]
        return (
            bool(runs)
            and not re.search(r"['\[\]{}#]", plain)
            and all(len(run) <= lengths.get(run[0], 0) for run in runs)
        )

    return allows


READ_FORMAT = constant(TEXT, "a time format such as 'yyyy-MM-dd HH:mm:ss'", _time_format(_READ_LENGTHS))
WRITE_FORMAT = constant(TEXT, "a time format such as 'yyyy-MM-dd HH:mm:ss'", _time_format(_WRITE_LENGTHS))


def one_of(*words: str) -> Parameter:
    return constant(
        TEXT, "one of " + ", ".join(repr(word) for word in words), lambda value: str(value).lower() in words
    )


def common(arguments: Arguments) -> Type:
    """The one type that holds all arguments."""
    found = common_type_of(tuple(argument.type for argument in arguments))
    if found is None:
        kinds = ", ".join(dict.fromkeys(str(argument.type) for argument in arguments))
        raise Refusal(f"the values have no common type: {kinds}", "cast them to one type, as in cast(x as string)")
    return found


def same_as(place: int) -> ResultRule:
    return lambda arguments: arguments[place].type


def common_from(place: int) -> ResultRule:
    return lambda arguments: common(arguments[place:])


def item_of(place: int) -> ResultRule:
    return lambda arguments: arguments[place].type.items[-1]


def compared(result: Type | ResultRule) -> ResultRule:
    """All arguments must have a common type; the call has another one."""

    def rule(arguments: Arguments) -> Type:
        common(arguments)
        return result if isinstance(result, Type) else result(arguments)

    return rule


def array_of_common(arguments: Arguments) -> Type:
    return array_of(common(arguments))


def fits_items(result: Type | ResultRule) -> ResultRule:
    """The second argument must go with the items of the array before it."""

    def rule(arguments: Arguments) -> Type:
        item, value = arguments[0].type.items[0], arguments[1].type
        widened = common_type_of((item, value)) == item and "decimal" not in (item.name, value.name)
        if value == NULL or not orderable(item) or not (value == item or widened):
            raise Refusal(f"the array holds {item}, not {value}", f"cast the value to {item}")
        return result if isinstance(result, Type) else result(arguments)

    return rule


def concatenated(arguments: Arguments) -> Type:
    types = tuple(argument.type for argument in arguments)
    if any(type_.name == "array" for type_ in types):
        return common(arguments)
    return BINARY if all(type_ == BINARY for type_ in types) else STRING


def operated(operator: str) -> ResultRule:
    def rule(arguments: Arguments) -> Type:
        left, right = arguments
        found = arithmetic(operator, left.type, right.type, (left.literal, right.literal))
        if found is None:
            raise Refusal(f"{left.type} and {right.type} do not go together here")
        return found

    return rule


def rounded(arguments: Arguments) -> Type:
    type_ = arguments[0].type
    if type_.name != "decimal":
        return type_
    places = arguments[1].literal if len(arguments) > 1 else 0
    assert isinstance(places, int), "PLACES accepts whole constants only"
    whole_digits = type_.precision - type_.scale + 1
    if places < 0:
        return decimal(min(38, max(whole_digits, 1 - places)), 0)
    scale = min(type_.scale, places)
    return decimal(min(38, whole_digits + scale), scale)


def whole_number(arguments: Arguments) -> Type:
    type_ = arguments[0].type
    if type_.name != "decimal":
        return LONG
    return decimal(type_.precision - type_.scale + 1, 0) if type_.scale else type_


def time_text(result: Type) -> ResultRule:
    """Spark reads constant words such as 'now' as the current time, so a constant must be a plain time."""

    def rule(arguments: Arguments) -> Type:
        refuse_time_word(arguments[0])
        return result

    return rule


def refuse_time_word(text: Checked) -> None:
    if text.columns or text.type != STRING:
        return
    if not (isinstance(text.literal, str) and ISO_TIMESTAMP.fullmatch(text.literal)):
        raise Refusal(
            "a constant time must be written out, as in '2026-01-31 12:00:00': a word such as 'now' would give "
            "another result on a replay",
            "use _ingestion_time",
            code="non_deterministic",
        )


def free_of(name: str, result: Type) -> ResultRule:
    def rule(arguments: Arguments) -> Type:
        if any(contains(argument.type, name) for argument in arguments):
            raise Refusal(f"a {name} cannot be used here")
        return result

    return rule
