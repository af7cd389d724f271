"""Column types: the words a definition uses, and the Spark types behind them.

A `Type` is a value: it parses from text, prints itself canonically (`str(type)`) and knows its Spark DDL.
`timestamp(s|ms|us)` says how a source encodes a timestamp; past the source the type is `timestamp`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

SIMPLE = ("string", "int", "long", "float", "double", "boolean", "date", "binary", "timestamp")
INTEGRAL = ("int", "long")
NUMERIC = ("int", "long", "float", "double", "decimal")
_SPARK = {"long": "bigint"}
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[<>(),:])")


class TypeSyntaxError(ValueError):
    """The text is not a column type; `offset` is where it stops making sense."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Type:
    """`name` is a word of SIMPLE or decimal, array, map, struct; the other fields belong to the compound ones."""

    name: str
    items: tuple[Type, ...] = ()
    fields: tuple[tuple[str, Type], ...] = ()
    precision: int = 0
    scale: int = 0
    unit: str = ""

    def __str__(self) -> str:
        return self._text(lambda type_: f"timestamp({type_.unit})" if type_.unit else type_.name)

    @property
    def ddl(self) -> str:
        """The type as Spark SQL writes it, once a source has read it."""
        return self._text(lambda type_: _SPARK.get(type_.name, type_.name))

    @property
    def decoded(self) -> Type:
        """The type once a source has read it: a timestamp has no unit any more."""
        return Type(
            self.name,
            tuple(item.decoded for item in self.items),
            tuple((name, type_.decoded) for name, type_ in self.fields),
            self.precision,
            self.scale,
        )

    @property
    def numeric(self) -> bool:
        return self.name in NUMERIC

    def _text(self, simple: Callable[[Type], str]) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.fields:
            return f"struct<{','.join(f'{name}:{type_._text(simple)}' for name, type_ in self.fields)}>"
        if self.items:
            return f"{self.name}<{','.join(item._text(simple) for item in self.items)}>"
        return simple(self)


STRING, INT, LONG, FLOAT, DOUBLE, BOOLEAN, DATE, BINARY, TIMESTAMP = (Type(name) for name in SIMPLE)
NULL = Type("null")


def array_of(item: Type) -> Type:
    return Type("array", items=(item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", items=(key, value))


def struct_of(*fields: tuple[str, Type]) -> Type:
    return Type("struct", fields=fields)


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", precision=precision, scale=scale)


SYSTEM_COLUMNS: tuple[tuple[str, Type], ...] = (
    ("_event_id", STRING),
    ("_event_time", TIMESTAMP),
    ("_ingestion_time", TIMESTAMP),
    ("_key", STRING),
    ("_source", STRING),
    ("_partition", INT),
    ("_offset", LONG),
    ("_headers", map_of(STRING, STRING)),
)


def parse_type(text: str) -> Type:
    """Reads one column type; raises TypeSyntaxError with the offset of the first thing it cannot read."""
    reader = _Reader(text)
    parsed = reader.type()
    reader.end()
    return parsed


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def type(self) -> Type:
        start = self.position
        name = self.word()
        if name == "decimal":
            return self.decimal(start)
        if name == "timestamp":
            return self.timestamp()
        if name in SIMPLE:
            return Type(name)
        if name == "array":
            return array_of(self.inside(self.type))
        if name == "map":
            return self.inside(self.pair)
        if name == "struct":
            return self.inside(self.struct)
        raise TypeSyntaxError(f"unknown type {name!r}", start)

    def decimal(self, start: int) -> Type:
        self.expect("(")
        precision = self.number()
        scale = self.number() if self.accept(",") else 0
        self.expect(")")
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise TypeSyntaxError("decimal(p,s) needs 1 <= p <= 38 and 0 <= s <= p", start)
        return decimal(precision, scale)

    def timestamp(self) -> Type:
        if not self.accept("("):
            return TIMESTAMP
        start = self.position
        unit = self.word()
        if unit not in ("s", "ms", "us"):
            raise TypeSyntaxError("a timestamp's unit is s, ms or us", start)
        self.expect(")")
        return Type("timestamp", unit=unit)

    def pair(self) -> Type:
        key = self.type()
        self.expect(",")
        return map_of(key, self.type())

    def struct(self) -> Type:
        fields = [self.field()]
        while self.accept(","):
            fields.append(self.field())
        return struct_of(*fields)

    def field(self) -> tuple[str, Type]:
        name = self.word()
        self.expect(":")
        return name, self.type()

    def inside(self, read: Callable[[], Type]) -> Type:
        self.expect("<")
        value = read()
        self.expect(">")
        return value

    def peek(self) -> str | None:
        match = _TOKEN.match(self.text, self.position)
        return match.group(1) if match else None

    def take(self) -> str:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise TypeSyntaxError("the type ends too early", self.position)
        self.position = match.end()
        return match.group(1)

    def word(self) -> str:
        start, token = self.position, self.take()
        if not (token[0].isalpha() or token[0] == "_"):
            raise TypeSyntaxError(f"expected a name, not {token!r}", start)
        return token

    def number(self) -> int:
        start, token = self.position, self.take()
        if not token.isdigit():
            raise TypeSyntaxError(f"expected a number, not {token!r}", start)
        return int(token)

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.take()
        return True

    def expect(self, token: str) -> None:
        start = self.position
        if not self.accept(token):
            raise TypeSyntaxError(f"expected {token!r}", start)

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise TypeSyntaxError(f"nothing may follow the type: {self.text[self.position :].strip()!r}", self.position)
