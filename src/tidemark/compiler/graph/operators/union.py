"""`union` puts streams of the same columns together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from tidemark.compiler.definition.job import OperatorDefinition
from tidemark.compiler.definition.model import Text
from tidemark.compiler.diagnostics.diagnostic import Path
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.node import MAIN, OperatorNode, Stream
from tidemark.compiler.graph.operators.operator import Input, OperatorType
from tidemark.compiler.plan.plan import UnionPlan


class UnionFields(OperatorDefinition):
    type: Literal["union"]
    inputs: Annotated[tuple[Text, ...], Field(strict=False, min_length=2)]

    def references(self) -> tuple[tuple[Path, str], ...]:
        return tuple((("inputs", index), text) for index, text in enumerate(self.inputs))


@dataclass(frozen=True)
class UnionNode(OperatorNode):
    def plan(self) -> UnionPlan:
        return UnionPlan(id=self.id, inputs=self.reads, output=self.output)


def build(id_: str, fields: UnionFields, inputs: tuple[Input, ...], checker: Checker) -> UnionNode | None:
    for index, input_ in enumerate(inputs):
        _check_kind(input_, index, checker)
        if input_.reference in [other.reference for other in inputs[:index]]:
            hint = "Name each input once."
            checker.refuse("duplicate_input", f"`{input_.reference}` is an input twice", hint, "inputs", index)
        _check_columns(inputs[0], input_, index, checker)
    if checker.failed():
        return None
    closed = next((input_.stream.closed for input_ in inputs if input_.stream.closed), None)
    output = Stream(inputs[0].stream.columns, closed=closed)
    return UnionNode(id_, tuple(input_.reference for input_ in inputs), {MAIN: output})


def _check_kind(input_: Input, index: int, checker: Checker) -> None:
    if input_.stream.side is not None:
        hint = "Only filter, map, flat_map, branch and sinks may follow a side port."
        checker.refuse("side_port", f"union cannot follow the side port {input_.stream.side}", hint, "inputs", index)
    if input_.stream.table is not None:
        message = (
            f"union cannot follow `{input_.stream.table}`: its changing results are a table, not a stream of events"
        )
        checker.refuse("table_not_stream", message, "Write those results to a sink of their own.", "inputs", index)


def _check_columns(first: Input, other: Input, index: int, checker: Checker) -> None:
    expected, found = first.stream.columns, other.stream.columns
    for name in (*expected, *(name for name in found if name not in expected)):
        ours, theirs = expected.get(name), found.get(name)
        if ours != theirs:
            message = (
                f"`{name}` is {ours or 'missing'} in {first.reference} and {theirs or 'missing'} in {other.reference}"
            )
            checker.refuse("schema_mismatch", message, "Make them equal with a map before the union.", "inputs", index)
            return


UNION = OperatorType("union", UnionFields, build, ("main",), "Puts `inputs` of the same columns together.")
