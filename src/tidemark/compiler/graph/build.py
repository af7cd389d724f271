"""A draft of a job to its graph. A part whose input is broken is left out silently; all others are checked."""

from __future__ import annotations

from tidemark.compiler.definition.parse import Draft
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.node import MAIN, AnyNode, OperatorNode, Reference, SinkNode, SourceNode
from tidemark.compiler.graph.operators.operator import Input
from tidemark.compiler.graph.operators.table import OPERATORS_BY_NAME
from tidemark.compiler.graph.order import in_commit_order, topological
from tidemark.compiler.graph.sources import build_source


def build(draft: Draft) -> tuple[LogicalGraph, list[Problem]]:
    """The graph of what is sound, and everything that is not."""
    builder = _Builder(draft)
    builder.sources()
    builder.steps()
    sinks = in_commit_order(builder.sink_nodes, [*draft.sinks])
    return LogicalGraph(builder.source_nodes, builder.operator_nodes, sinks), builder.problems


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

    def steps(self) -> None:
        """Operators and sinks, each after what it reads: an operator may read what a sink's target refused."""
        written = {id_: operator.references() for id_, operator in self.draft.operators.items()}
        for id_, sink in self.draft.sinks.items():
            written.setdefault(id_, ((("input",), sink.input),))
        reads = {id_: [Reference.parse(text).node for _, text in references] for id_, references in written.items()}
        for id_ in self.draft.sources:
            reads.pop(id_, None)
        order, cycles = topological(reads)
        for cycle in cycles:
            self.cycle(cycle)
        for id_ in order:
            self.operator(id_) if id_ in self.draft.operators else self.sink(id_)
        for id_ in written:
            if id_ not in order:
                self.inputs(Checker((self.section(id_), id_)), written[id_])

    def section(self, id_: str) -> str:
        return "operators" if id_ in self.draft.operators else "sinks"

    def operator(self, id_: str) -> None:
        definition = self.draft.operators[id_]
        checker = Checker(("operators", id_))
        inputs = self.inputs(checker, definition.references())
        if inputs is not None:
            node = OPERATORS_BY_NAME[definition.type].build(id_, definition, inputs, checker)
            self.problems.extend(checker.problems)
            if node is not None:
                self.operator_nodes[id_] = node

    def sink(self, id_: str) -> None:
        definition = self.draft.sinks[id_]
        checker = Checker(("sinks", id_))
        inputs = self.inputs(checker, ((("input",), definition.input),))
        if inputs is None:
            return
        (input_,) = inputs
        if definition.options is not None:
            checker.add(definition.options.problems(input_.stream.columns), definition.connector)
        self.problems.extend(checker.problems)
        refuses = definition.options is not None and definition.options.refuses
        self.sink_nodes[id_] = SinkNode(id_, definition, input_.reference, input_.stream, refuses)

    def inputs(self, checker: Checker, written: tuple[tuple[Path, str], ...]) -> tuple[Input, ...] | None:
        """The inputs, or None when one does not exist or is broken; the first is reported, the second is known."""
        found = [self.input(checker, Reference.parse(text), path) for path, text in written]
        self.problems.extend(checker.problems)
        checker.problems.clear()
        known = tuple(input_ for input_ in found if input_ is not None)
        return known if len(known) == len(found) else None

    def input(self, checker: Checker, reference: Reference, path: Path) -> Input | None:
        node = self.node(reference.node)
        if node is None or (isinstance(node, SinkNode) and reference.port == MAIN):
            self.missing(checker, reference, path)
            return None
        if reference.port in node.ports:
            return Input(reference, node.ports[reference.port])
        hint = hint_for(reference.port, node.ports, what=f"ports of `{reference.node}`")
        checker.refuse("unknown_port", f"`{reference.node}` has no port `{reference.port}`", hint, *path)
        return None

    def node(self, id_: str) -> AnyNode | None:
        return self.source_nodes.get(id_) or self.operator_nodes.get(id_) or self.sink_nodes.get(id_)

    def missing(self, checker: Checker, reference: Reference, path: Path) -> None:
        draft = self.draft
        if reference.node in draft.sinks and reference.port == MAIN:
            hint = "Read what the sink reads instead."
            checker.refuse("unknown_input", f"`{reference.node}` is a sink, and a sink has no output", hint, *path)
        elif reference.node not in (*draft.sources, *draft.operators, *draft.sinks, *draft.broken):
            hint = hint_for(reference.node, [*draft.sources, *draft.operators], what="sources and operators")
            checker.refuse("unknown_input", f"there is no source or operator `{reference.node}`", hint, *path)

    def cycle(self, ids: list[str]) -> None:
        shown = " → ".join((*ids, ids[0]))
        path: Path = (self.section(ids[0]), ids[0])
        what = "operators" if all(id_ in self.draft.operators for id_ in ids) else "operators and sinks"
        hint = "Events flow from sources to sinks: let one of them read something else."
        self.problems.append(
            Problem("cycle", f"these {what} read each other in a circle: {shown}", hint, path, at_key=True)
        )
