"""The values a graph is made of: references, streams with typed columns, and nodes with ports.

Nodes are frozen. What each operator means lives with the operator; how it runs lives in the data plane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tidemark.compiler.definition.job import SinkDefinition, SourceDefinition
from tidemark.compiler.plan.plan import AnyOperator, Column
from tidemark.schema import BINARY, LONG, STRING, SYSTEM_COLUMNS, TIMESTAMP, Type

MAIN, LATE, ERRORS = "main", "late", "errors"
SIDE_PORTS = (LATE, ERRORS)
SYSTEM = dict(SYSTEM_COLUMNS)
REASON_COLUMNS: dict[str, Type] = {"_error_code": STRING, "_error": STRING}
ERROR_COLUMNS: dict[str, Type] = {"_raw": BINARY, **REASON_COLUMNS}
WINDOW_BOUNDS: dict[str, Type] = {"window_start": TIMESTAMP, "window_end": TIMESTAMP}
LATENESS: dict[str, Type] = {"watermark": TIMESTAMP, "lateness_ms": LONG}
RESERVED = frozenset((*SYSTEM, *ERROR_COLUMNS, "_op", "_revision"))

Columns = Mapping[str, Type]


@dataclass(frozen=True)
class Reference:
    """An output: a node and one of its ports."""

    node: str
    port: str = MAIN

    @classmethod
    def parse(cls, text: str) -> Reference:
        node, _, port = text.partition(".")
        return cls(node, port or MAIN)

    def __str__(self) -> str:
        return self.node if self.port == MAIN else f"{self.node}.{self.port}"


@dataclass(frozen=True)
class Stream:
    """What flows out of a port: its columns, and where it comes from as far as that limits what may follow.

    `side` is the side port it began at, `table` the operator whose changing results it carries, `closed` the
    window upstream whose results are final.
    """

    columns: Columns
    side: Reference | None = None
    table: str | None = None
    closed: str | None = None

    @property
    def scope(self) -> Columns:
        """What an expression may name."""
        return {**SYSTEM, **self.columns}


@dataclass(frozen=True)
class SourceNode:
    """`columns` are as the schema writes them, `options` as the plan carries them."""

    id: str
    definition: SourceDefinition
    columns: Columns
    options: Mapping[str, object]
    record_format: str

    @property
    def ports(self) -> Mapping[str, Stream]:
        decoded = {name: type_.decoded for name, type_ in self.columns.items()}
        side = Stream({**ERROR_COLUMNS, **SYSTEM}, side=Reference(self.id, ERRORS))
        return {MAIN: Stream(decoded), ERRORS: side}


@dataclass(frozen=True)
class OperatorNode:
    """What all operators share; a subclass adds what it needs to plan itself.

    `late_adds` are the columns its late port has beside those of its input.
    """

    stateful: ClassVar[bool] = False
    late_adds: ClassVar[Columns] = {}

    id: str
    inputs: tuple[Reference, ...]
    ports: Mapping[str, Stream]

    def plan(self) -> AnyOperator:
        raise NotImplementedError

    @property
    def output(self) -> tuple[Column, ...]:
        """The payload of the main port; system columns are with every event, so they are not named."""
        columns = self.ports[MAIN].columns
        return as_columns({name: type_ for name, type_ in columns.items() if name not in SYSTEM})

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(map(str, self.inputs))


@dataclass(frozen=True)
class SinkNode:
    """`refuses` says that its target may refuse rows by their content, which then leave by its only port."""

    id: str
    definition: SinkDefinition
    input: Reference
    stream: Stream
    refuses: bool = False

    @property
    def ports(self) -> Mapping[str, Stream]:
        columns = {**self.stream.columns, **SYSTEM, **REASON_COLUMNS}
        return {ERRORS: Stream(columns, side=Reference(self.id, ERRORS))} if self.refuses else {}


AnyNode = SourceNode | OperatorNode | SinkNode


def as_columns(columns: Columns) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=str(type_)) for name, type_ in columns.items())


def late_stream(id_: str, columns: Columns, adds: Columns) -> Stream:
    """What a stateful operator writes about an event that came too late."""
    return Stream({**columns, **SYSTEM, **adds}, side=Reference(id_, LATE))
