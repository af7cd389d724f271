"""The logical graph of a job: its nodes in the order events pass them, and who reads whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidemark.compiler.graph.node import AnyNode, OperatorNode, Reference, SinkNode, SourceNode, Stream


@dataclass(frozen=True)
class LogicalGraph:
    """`operators` are in topological order; sources and sinks are in the order of the definition.

    A sink that takes the rows refused by another one stands behind it all the same.
    """

    sources: Mapping[str, SourceNode]
    operators: Mapping[str, OperatorNode]
    sinks: Mapping[str, SinkNode]

    def node(self, id_: str) -> AnyNode:
        return self.sources.get(id_) or self.operators.get(id_) or self.sinks[id_]

    def stream(self, reference: Reference) -> Stream:
        return self.node(reference.node).ports[reference.port]

    def references(self) -> Iterator[Reference]:
        """Every output that something reads."""
        for operator in self.operators.values():
            yield from operator.inputs
        for sink in self.sinks.values():
            yield sink.input

    def above(self, id_: str) -> set[str]:
        """The node and everything its events come through."""
        found: set[str] = set()
        waiting = [id_]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting.extend(self._reads(current))
        return found

    def _reads(self, id_: str) -> list[str]:
        if id_ in self.sinks:
            return [self.sinks[id_].input.node]
        operator = self.operators.get(id_)
        return [reference.node for reference in operator.inputs] if operator else []
