"""A draft of a job to its graph. A part whose input is broken is left out silently; all others are checked."""

from __future__ import annotations

from tidemark.compiler.definition.parse import Draft
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.node import AnyNode, OperatorNode, Reference, SinkNode, SourceNode
from tidemark.compiler.graph.operators.operator import Input
from tidemark.compiler.graph.operators.table import OPERATORS_BY_NAME
from tidemark.compiler.graph.order import topological
from tidemark.compiler.graph.sources import build_source


def build(draft: Draft) -> tuple[LogicalGraph, list[Problem]]:
    """The graph of what is sound, and everything that is not."""
    builder = _Builder(draft)
    builder.sources()
    builder.operators()
    builder.sinks()
    return LogicalGraph(builder.source_nodes, builder.operator_nodes, builder.sink_nodes), builder.problems


class _Builder:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.problems: list[Problem] = []
        self.source_nodes: dict[str, SourceNode] = {}
        self.operator_nodes: dict[str, OperatorNode] = {}
        self.sink_nodes: dict[str, SinkNode] = {}

    def sources(self) -> None:
        for id_, definition in self.draft.sources.items():
            checker = Checker(("sources", id_))
            node = build_source(id_, definition, checker)
            self.problems.extend(checker.problems)
            if node is not None:
                self.source_nodes[id_] = node

    def operators(self) -> None:
        definitions = self.draft.operators
        reads = {
            id_: [Reference.parse(text).node for _, text in definition.references()]
            for id_, definition in definitions.items()
        }
        order, cycles = topological(reads)
        for cycle in cycles:
            self.cycle(cycle)
        for id_ in order:
            self.operator(id_)
        for id_ in definitions:
            if id_ not in order:
                self.inputs(Checker(("operators", id_)), definitions[id_].references())

    def operator(self, id_: str) -> None:
        definition = self.draft.operators[id_]
        checker = Checker(("operators", id_))
        inputs = self.inputs(checker, definition.references())
        if inputs is not None:
            node = OPERATORS_BY_NAME[definition.type].build(id_, definition, inputs, checker)
            self.problems.extend(checker.problems)
            if node is not None:
                self.operator_nodes[id_] = node

    def sinks(self) -> None:
        for id_, definition in self.draft.sinks.items():
            checker = Checker(("sinks", id_))
            inputs = self.inputs(checker, ((("input",), definition.input),))
            if inputs is None:
                continue
            (input_,) = inputs
            if definition.options is not None:
                checker.add(definition.options.problems(input_.stream.columns), definition.connector)
            self.problems.extend(checker.problems)
            self.sink_nodes[id_] = SinkNode(id_, definition, input_.reference, input_.stream)

    def inputs(self, checker: Checker, written: tuple[tuple[Path, str], ...]) -> tuple[Input, ...] | None:
        """The inputs, or None when one does not exist or is broken; the first is reported, the second is known."""
        found = [self.input(checker, Reference.parse(text), path) for path, text in written]
        self.problems.extend(checker.problems)
        checker.problems.clear()
        known = tuple(input_ for input_ in found if input_ is not None)
        return known if len(known) == len(found) else None

    def input(self, checker: Checker, reference: Reference, path: Path) -> Input | None:
        node: AnyNode | None = self.source_nodes.get(reference.node) or self.operator_nodes.get(reference.node)
        if node is None:
            self.missing(checker, reference, path)
            return None
        if reference.port in node.ports:
            return Input(reference, node.ports[reference.port])
        hint = hint_for(reference.port, node.ports, what=f"ports of `{reference.node}`")
        checker.refuse("unknown_port", f"`{reference.node}` has no port `{reference.port}`", hint, *path)
        return None

    def missing(self, checker: Checker, reference: Reference, path: Path) -> None:
        draft = self.draft
        if reference.node in draft.sinks and reference.port == "errors":
            checker.not_available("the port `errors` of a sink", *path, hint="Remove what reads it.")
        elif reference.node in draft.sinks:
            hint = "Read what the sink reads instead."
            checker.refuse("unknown_input", f"`{reference.node}` is a sink, and a sink has no output", hint, *path)
        elif reference.node not in (*draft.sources, *draft.operators, *draft.broken):
            hint = hint_for(reference.node, [*draft.sources, *draft.operators], what="sources and operators")
            checker.refuse("unknown_input", f"there is no source or operator `{reference.node}`", hint, *path)

    def cycle(self, ids: list[str]) -> None:
        shown = " → ".join((*ids, ids[0]))
        path: Path = ("operators", ids[0])
        hint = "Events flow from sources to sinks: let one of them read something else."
        self.problems.append(
            Problem("cycle", f"these operators read each other in a circle: {shown}", hint, path, at_key=True)
        )
