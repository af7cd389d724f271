"""Constants of an expression: read from the words of the text, written as Spark SQL that nothing breaks out of."""

from __future__ import annotations

import math
import re
from datetime import datetime
from decimal import Decimal

from tidemark.compiler.graph.expression.result import ExpressionProblem
from tidemark.compiler.graph.expression.tokens import Token
from tidemark.compiler.graph.expression.tree import Interval, Literal
from tidemark.schema import BINARY, DATE, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMP, Type, decimal

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
ISO_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
ISO_TIMESTAMP = re.compile(
    ISO_DATE.pattern + r"([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]([01]\d):[0-5]\d)?)?"
)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(E[+-]?\d+)?(L|D|F|BD)?", re.IGNORECASE)
MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_MAX_MONTHS, _MAX_MICROSECONDS = 12 * 10_000, 10_000 * 366 * 86_400_000_000
_UNSAFE_CHARACTER = re.compile(r"[\\'\x00-\x1f\x7f-\x9f]|\$(?=\{)")


def number(text: str, offset: int, *, negative: bool = False) -> Literal:
    """`text` in Spark's notation: `5 5L 1.5 1e3 2D 2F 1.5BD`, typed as Spark types it."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ExpressionProblem("expression_syntax", f"{text} is not a number", offset, "write 5, 5L, 1.5 or 1.5e3")
    digits, exponent, suffix = match.group(1), match.group(2) or "", (match.group(3) or "").upper()
    exact = Decimal(digits + exponent) * (-1 if negative else 1)
    if suffix in ("D", "F") or (exponent and suffix != "BD"):
        return _floating(exact, FLOAT if suffix == "F" else DOUBLE, offset)
    if suffix == "BD" or "." in digits:
        return _decimal(exact, offset)
    return _whole(int(exact), suffix == "L", offset)


def _floating(exact: Decimal, type_: Type, offset: int) -> Literal:
    value = float(exact)
    if math.isinf(value) or (type_ == FLOAT and abs(value) > 3.4028234663852886e38):
        raise ExpressionProblem("expression_syntax", f"the number does not fit into a {type_}", offset)
    return Literal(offset, value, type_)


def _decimal(exact: Decimal, offset: int) -> Literal:
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int), "a number that was read is finite"
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if precision > 38:
        raise ExpressionProblem("expression_syntax", "the number has more than 38 digits", offset)
    return Literal(offset, exact, decimal(precision, scale))


def _whole(value: int, long: bool, offset: int) -> Literal:
    if not long and -INT_MAX - 1 <= value <= INT_MAX:
        return Literal(offset, value, INT)
    if -LONG_MAX - 1 <= value <= LONG_MAX:
        return Literal(offset, value, LONG)
    if long:
        raise ExpressionProblem("expression_syntax", f"{value}L does not fit into a long", offset)
    return _decimal(Decimal(value), offset)


def binary(token: Token) -> Literal:
    match = re.fullmatch(r"[xX](['\"])([0-9A-Fa-f]*)\1", token.text)
    if match is None:
        raise ExpressionProblem("expression_syntax", f"{token.text} is not a binary value", token.start, "write X'1F'")
    digits = match.group(2)
    return Literal(token.start, bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)


def moment(kind: str, value: str, offset: int) -> Literal:
    """`DATE '…'` and `TIMESTAMP '…'`: ISO-8601 only, since Spark reads words like 'now' there."""
    type_ = DATE if kind == "DATE" else TIMESTAMP
    if time_sql(value, type_) is None:
        example = "2026-01-31" if type_ == DATE else "2026-01-31 12:00:00"
        raise ExpressionProblem("bad_argument", f"{value!r} is not a {type_}", offset, f"write {kind} '{example}'")
    return Literal(offset, value, type_)


def time_sql(value: str, type_: Type) -> str | None:
    """The text as a literal of a date or timestamp, or None when it is none."""
    pattern = ISO_DATE if type_ == DATE else ISO_TIMESTAMP
    if not pattern.fullmatch(value):
        return None
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return None
    return f"{type_.name.upper()} {quoted(value)}"


def interval(amounts: list[tuple[int, str]], offset: int) -> Interval:
    months = microseconds = 0
    for amount, unit in amounts:
        word = unit.upper().removesuffix("S")
        if word in _MONTHS:
            months += amount * _MONTHS[word]
        elif word in MICROSECONDS:
            microseconds += amount * MICROSECONDS[word]
        else:
            known = ", ".join((*MICROSECONDS, *_MONTHS)).lower()
            raise ExpressionProblem("bad_argument", f"{unit} is not a unit of time", offset, f"units are {known}")
    if months and microseconds:
        raise ExpressionProblem(
            "bad_argument",
            "an interval has either months and years or exact units, not both",
            offset,
            "add two intervals",
        )
    if abs(months) > _MAX_MONTHS or abs(microseconds) > _MAX_MICROSECONDS:
        raise ExpressionProblem("bad_argument", "the interval is longer than 10000 years", offset)
    return Interval(offset, months, microseconds)


def literal_sql(literal: Literal) -> str:
    value, type_ = literal.value, literal.type
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, str):
        return f"{type_.name.upper()} {quoted(value)}" if type_ in (DATE, TIMESTAMP) else quoted(value)
    text = _number_sql(value, type_)
    return f"({text})" if text.startswith("-") else text


def _number_sql(value: int | float | Decimal, type_: Type) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if type_ == FLOAT:
        return f"{value!r}F"
    if type_ == DOUBLE:
        return f"{value!r}D"
    return f"{value}L" if type_ == LONG else str(value)


def quoted(value: str) -> str:
    """A Spark string literal. `${` is written as an escape: Spark would put environment variables in its place."""
    return f"'{_UNSAFE_CHARACTER.sub(_escaped, value)}'"


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return f"\\{character}" if character in "\\'" else f"\\u{ord(character):04x}"


def column_sql(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def moved_days(function: str) -> str:
    """`date_add` or `date_sub`: a million days and more give null, since such a date breaks whatever reads it."""
    return function + "({0}, CAST(CAST({1} AS DECIMAL(6,0)) AS INT))"


def string(value: str, offset: int) -> Literal:
    return Literal(offset, value, STRING)
