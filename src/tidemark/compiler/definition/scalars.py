"""What a plain scalar means: the YAML 1.2 core schema and nothing more.

`on`, `yes`, `1m` and timestamps are text. Numbers that JSON cannot carry are refused, so that YAML and JSON
hold the same definitions.
"""

from __future__ import annotations

import math
import re

MAX_DIGITS = 40
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class ScalarError(ValueError):
    """The scalar stands for something a definition cannot hold."""


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
        return _integer(text)
    if _NOT_FINITE.fullmatch(text):
        raise ScalarError(f"{text} is not a number that a definition can hold")
    if _FLOAT.fullmatch(text):
        return _float(text)
    return text


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ScalarError(f"a whole number may have {MAX_DIGITS} digits at most")
    return int(text, 0) if _BASED.fullmatch(text) else int(text)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ScalarError(f"{text} is too large for a number")
    return number


def text_value(text: str) -> str:
    """Quoted text: joins the surrogate pairs of JSON's escapes, refuses what is not text."""
    if "\x00" in text:
        raise ScalarError("text cannot hold the character NUL")
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ScalarError("text cannot hold half of a surrogate pair") from None
