"""What an operator type tells the compiler about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidemark.compiler.definition.job import OperatorDefinition
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.node import OperatorNode, Reference, Stream


@dataclass(frozen=True)
class Input:
    """A resolved input: what is read, and the columns it has there."""

    reference: Reference
    stream: Stream


@dataclass(frozen=True)
class OperatorType:
    """`build` gives the node, or None when it has refused something; `ports` names the fixed ones."""

    name: str
    fields: type[OperatorDefinition]
    build: Callable[[str, Any, tuple[Input, ...], Checker], OperatorNode | None]
    ports: tuple[str, ...]
    docs: str


def refuse_state_after(input_: Input, checker: Checker, what: str) -> None:
    """A stateful operator reads a stream of events: neither a side port nor the changes of a table."""
    stream = input_.stream
    if stream.side is not None:
        hint = "Only filter, map, flat_map, branch and sinks may follow a side port."
        checker.refuse("side_port", f"{what} cannot follow the side port {stream.side}", hint, "input")
    if stream.table is not None:
        message = f"{what} cannot follow `{stream.table}`: its changing results are a table, not a stream of events"
        hint = "Give that window `emit: on_close`, or write the results to a sink."
        checker.refuse("table_not_stream", message, hint, "input")


def refuse_updates_after_close(input_: Input, checker: Checker, what: str) -> None:
    """Spark runs a query in one output mode: updates cannot follow a window that emits when it closes."""
    if input_.stream.closed is not None:
        message = f"{what} behind the window `{input_.stream.closed}`, which emits on close,"
        checker.not_available(message, "input", hint="Use a window with `emit: on_close` here, or read another input.")
