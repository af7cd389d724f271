"""The words of an expression: sqlglot's Spark tokenizer for the boundaries, Spark's own rules for the values.

Comments, control characters and anything else between two words are refused here, with their position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as ForeignToken
from sqlglot.tokenizer_core import TokenType

from tidemark.compiler.graph.expression.result import ExpressionProblem

MAX_LENGTH = 10_000
_WORD = re.compile(r"[^\W\d]\w*", re.UNICODE)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_NAMED_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


class Kind(Enum):
    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    BINARY = "binary"
    SYMBOL = "symbol"
    END = "end"


_KINDS = {
    TokenType.IDENTIFIER: Kind.QUOTED,
    TokenType.STRING: Kind.STRING,
    TokenType.RAW_STRING: Kind.STRING,
    TokenType.NUMBER: Kind.NUMBER,
    TokenType.HEX_STRING: Kind.BINARY,
}


@dataclass(frozen=True)
class Token:
    """`text` is the source as written; `value` is a word in upper case, a name or string without its quotes."""

    kind: Kind
    text: str
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.kind is Kind.WORD and self.value in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.value in symbols


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of the text and one END; raises ExpressionProblem."""
    if len(text) > MAX_LENGTH:
        raise ExpressionProblem(
            "expression_too_long", f"an expression may have {MAX_LENGTH} characters, this one has {len(text)}", 0
        )
    found = tuple(_read(text, token) for token in _foreign_tokens(text))
    end = Token(Kind.END, "", "", len(text), len(text))
    start = Token(Kind.END, "", "", 0, 0)
    for before, after in pairwise((start, *found, end)):
        _refuse_gap(text, before.end, after.start)
    return (*found, end)


def _foreign_tokens(text: str) -> Iterator[ForeignToken]:
    """A number with a suffix (`5L`) comes as three tokens over the same characters: the first is enough."""
    try:
        tokens = Spark().tokenize(text)
    except TokenError as error:
        raise ExpressionProblem(
            "expression_syntax", "a quote is opened and not closed", _unclosed(text), "close it, or write it as \\'"
        ) from error
    covered = -1
    for token in tokens:
        if token.start > covered:
            covered = token.end
            yield token


def _read(text: str, token: ForeignToken) -> Token:
    source = text[token.start : token.end + 1]
    kind = _KINDS.get(token.token_type, Kind.WORD if _WORD.fullmatch(source) else Kind.SYMBOL)
    return Token(kind, source, _value(kind, source, token.start), token.start, token.end + 1)


def _value(kind: Kind, source: str, start: int) -> str:
    if kind is Kind.WORD:
        return source.upper()
    if kind is Kind.QUOTED:
        return source[1:-1].replace("``", "`")
    if kind is Kind.STRING:
        return _string(source, start)
    return source


def _string(source: str, start: int) -> str:
    value = source[2:-1] if source[0] in "rR" else _ESCAPE.sub(_unescape, source[1:-1])
    joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "\ufffd" in joined and "\ufffd" not in value:
        raise ExpressionProblem("expression_syntax", "the string holds half a character (a lone surrogate)", start)
    return joined


def _unescape(match: re.Match[str]) -> str:
    four, eight, octal, other = match.groups()
    if octal:
        return chr(int(octal, 8))
    code = four or eight
    if code:
        return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else "\ufffd"
    return _NAMED_ESCAPES.get(other, other)


def _refuse_gap(text: str, start: int, end: int) -> None:
    gap = text[start:end]
    if gap.strip():
        offset = start + len(gap) - len(gap.lstrip())
        raise ExpressionProblem(
            "expression_not_allowed",
            "comments are not allowed in an expression",
            offset,
            "put the comment beside the expression, as a YAML comment",
        )


def _unclosed(text: str) -> int:
    """Where the quote that is never closed was opened."""
    opened: str | None = None
    offset = position = 0
    while position < len(text):
        character = text[position]
        if opened is None and character in "'\"`":
            opened, offset = character, position
        elif opened and opened != "`" and character == "\\":
            position += 1
        elif character == opened:
            opened = None
        position += 1
    return offset
