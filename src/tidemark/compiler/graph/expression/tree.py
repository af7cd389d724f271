"""The tree of an expression as it is written: names not yet looked up, types not yet known.

Every node knows the offset of the character to blame. There is no node for a query, a window or a star: what has
no node here cannot reach Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tidemark.schema import Type


@dataclass(frozen=True)
class Node:
    offset: int


@dataclass(frozen=True)
class Literal(Node):
    value: str | bytes | bool | int | float | Decimal | None
    type: Type


@dataclass(frozen=True)
class Interval(Node):
    """Calendar months or exact microseconds, never both."""

    months: int
    microseconds: int


@dataclass(frozen=True)
class Name(Node):
    name: str


@dataclass(frozen=True)
class Field(Node):
    base: Node
    name: str


@dataclass(frozen=True)
class Subscript(Node):
    base: Node
    index: Node


@dataclass(frozen=True)
class Aliased(Node):
    """`value AS name`, inside `struct(…)` only."""

    value: Node
    name: str


@dataclass(frozen=True)
class Lambda(Node):
    parameters: tuple[str, ...]
    body: Node


@dataclass(frozen=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Extract(Node):
    field: str
    operand: Node


@dataclass(frozen=True)
class Cast(Node):
    operand: Node
    type: Type
    attempt: bool


@dataclass(frozen=True)
class Case(Node):
    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True)
class Unary(Node):
    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Logical(Node):
    """AND or OR over two or more conditions."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class In(Node):
    operand: Node
    options: tuple[Node, ...]


@dataclass(frozen=True)
class Between(Node):
    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True)
class Match(Node):
    """LIKE, ILIKE or RLIKE."""

    operator: str
    operand: Node
    pattern: Node
    escape: str | None


@dataclass(frozen=True)
class Is(Node):
    """IS NULL, IS TRUE or IS FALSE."""

    operand: Node
    state: str
