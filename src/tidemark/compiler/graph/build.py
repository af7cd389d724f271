"""A draft of a job to its graph. Of a part that is broken, or reads one, what does not hang on that is reported."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.compiler.definition.job import SourceDefinition
from tidemark.compiler.definition.parse import Draft
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.node import MAIN, AnyNode, OperatorNode, Reference, SinkNode, SourceNode, Stream
from tidemark.compiler.graph.operators.operator import Input
from tidemark.compiler.graph.operators.table import OPERATORS_BY_NAME
from tidemark.compiler.graph.order import in_commit_order, topological
from tidemark.compiler.graph.sources import build_source
from tidemark.schema import STRING


def build(draft: Draft) -> tuple[LogicalGraph, list[Problem]]:
    """The graph of what is sound, and everything that is not."""
    builder = _Builder(draft)
    builder.sources()
    builder.steps()
    sinks = in_commit_order(builder.sink_nodes, [*draft.sinks])
    return LogicalGraph(builder.source_nodes, builder.operator_nodes, sinks), builder.problems


# What is wrong whatever the columns are.
_OF_ITSELF = frozenset(
    {
        "aggregate_expected",
        "aggregate_not_allowed",
        "bad_name",
        "bad_window",
        "duplicate_input",
        "expression_not_allowed",
        "expression_syntax",
        "expression_too_deep",
        "expression_too_long",
        "function_not_allowed",
        "missing_key",
        "non_deterministic",
        "not_available",
        "session_on_update",
        "unknown_function",
    }
)
# What may only seem to be wrong with a part of which something was left out.
_OF_THE_WHOLE = frozenset({"bad_window", "missing_key"})
_OF_A_SCHEMA = frozenset({"bad_type", "name_collision", "unknown_column", "wrong_column_type"})
_KEEPS_COLUMNS = ("dedup", "filter")
_BESIDE_COLUMNS = frozenset({"event_id", "event_time", "key", "max_error_rate", "on_error", "watermark"})


@dataclass(frozen=True)
class _Assumed:
    """What a broken part would give, and which problems with it are real: None means all of them."""

    stream: Stream
    real: frozenset[str] | None


_UNKNOWN = _Assumed(Stream({}), _OF_ITSELF)


class _Builder:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.assumed: dict[str, _Assumed] = dict.fromkeys(draft.broken, _UNKNOWN)
        self.problems: list[Problem] = []
        self.source_nodes: dict[str, SourceNode] = {}
        self.operator_nodes: dict[str, OperatorNode] = {}
        self.sink_nodes: dict[str, SinkNode] = {}

    def sources(self) -> None:
        for id_, definition in self.draft.sources.items():
            checker = Checker(("sources", id_))
            node = build_source(id_, definition, checker)
            is_known = self.has_its_schema(id_)
            self.report(checker, id_, None, _OF_A_SCHEMA if is_known else frozenset())
            if node is not None and is_known:
                self.source_nodes[id_] = node
            else:
                self.assumed[id_] = _named(definition) if is_known else _UNKNOWN

    def has_its_schema(self, id_: str) -> bool:
        """Whether nothing was left out of a source that could be, or could have been meant for, its columns."""
        touched = self.draft.mended.get(id_, set())
        connector, written = self.draft.sources[id_].connector, self.draft.sources[id_].columns
        return not touched or (written is not None and touched <= {*_BESIDE_COLUMNS, connector})

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
        in_circles = [id_ for id_ in written if id_ not in order]
        self.assumed.update(dict.fromkeys(in_circles, _UNKNOWN))
        for id_ in (*order, *in_circles):
            self.operator(id_) if id_ in self.draft.operators else self.sink(id_)

    def section(self, id_: str) -> str:
        return "operators" if id_ in self.draft.operators else "sinks"

    def operator(self, id_: str) -> None:
        definition = self.draft.operators[id_]
        checker = Checker(("operators", id_))
        inputs, real = self.inputs(checker, definition.references())
        node = OPERATORS_BY_NAME[definition.type].build(id_, definition, inputs, checker)
        self.report(checker, id_, real)
        if node is None or real is not None or id_ in self.draft.mended:
            keeps = definition.type in _KEEPS_COLUMNS
            self.assumed[id_] = _Assumed(inputs[0].stream, real) if keeps else _UNKNOWN
        elif self.are_in_the_graph(inputs):
            self.operator_nodes[id_] = node
        else:
            self.assumed[id_] = _Assumed(node.ports[MAIN], None)

    def sink(self, id_: str) -> None:
        definition = self.draft.sinks[id_]
        checker = Checker(("sinks", id_))
        (input_,), real = self.inputs(checker, ((("input",), definition.input),))
        if definition.options is not None:
            checker.add(definition.options.problems(input_.stream.columns), definition.connector)
        self.report(checker, id_, real)
        if real is not None or not self.are_in_the_graph((input_,)):
            self.assumed[id_] = _UNKNOWN
            return
        refuses = definition.options is not None and definition.options.refuses
        self.sink_nodes[id_] = SinkNode(id_, definition, input_.reference, input_.stream, refuses)

    def report(
        self, checker: Checker, id_: str, real: frozenset[str] | None, more: frozenset[str] = frozenset()
    ) -> None:
        """The problems of a part that are real; of one that was mended those it has by itself, and `more`."""
        if id_ in self.draft.mended:
            real = (_OF_ITSELF - _OF_THE_WHOLE) | more
        self.problems.extend(found for found in checker.problems if real is None or found.code in real)

    def inputs(
        self, checker: Checker, written: tuple[tuple[Path, str], ...]
    ) -> tuple[tuple[Input, ...], frozenset[str] | None]:
        """The inputs, and which problems with them are real; one that does not exist is reported."""
        references = [(Reference.parse(text), path) for path, text in written]
        found = [(reference, self.input(checker, reference, path)) for reference, path in references]
        self.problems.extend(checker.problems)
        checker.problems.clear()
        limits = [assumed.real for _, assumed in found if assumed.real is not None]
        inputs = tuple(Input(reference, assumed.stream) for reference, assumed in found)
        return inputs, frozenset.intersection(*limits) if limits else None

    def input(self, checker: Checker, reference: Reference, path: Path) -> _Assumed:
        node = self.node(reference.node)
        is_sink = isinstance(node, SinkNode) or (node is None and reference.node in self.draft.sinks)
        if (is_sink and reference.port == MAIN) or (node is None and reference.node not in self.assumed):
            self.missing(checker, reference, path)
            return _UNKNOWN
        if node is None:
            return self.assumed[reference.node] if reference.port == MAIN else _UNKNOWN
        if reference.port in node.ports:
            return _Assumed(node.ports[reference.port], None)
        hint = hint_for(reference.port, node.ports, what=f"ports of `{reference.node}`")
        checker.refuse("unknown_port", f"`{reference.node}` has no port `{reference.port}`", hint, *path)
        return _UNKNOWN

    def are_in_the_graph(self, inputs: tuple[Input, ...]) -> bool:
        return all(self.node(input_.reference.node) is not None for input_ in inputs)

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


def _named(definition: SourceDefinition) -> _Assumed:
    """A source that is broken: the names of its columns are known where they are written, their types may not be."""
    if not definition.columns:
        return _UNKNOWN
    return _Assumed(Stream(dict.fromkeys(definition.columns, STRING)), _OF_ITSELF | {"unknown_column"})
