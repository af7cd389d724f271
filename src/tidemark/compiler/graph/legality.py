"""Rules over the whole graph: what is refused although each part is sound, and what deserves a warning."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.compiler.definition.parse import Draft
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.node import ERRORS, LATE, MAIN, REASON_COLUMNS, SIDE_PORTS, OperatorNode, Reference


def late_columns_collide(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    """A connected `.late` port adds columns; an event that has one of that name already would lose it."""
    connected = set(graph.references())
    for id_, operator in graph.operators.items():
        names = _late_collisions(graph, operator) if Reference(id_, LATE) in connected else []
        if names:
            hint = "Rename it with a map before, or leave the port unconnected."
            message = f"`{id_}.late` adds {' and '.join(names)}, and its input has that already"
            yield Problem("name_collision", message, hint, ("operators", id_), at_key=True)


def _late_collisions(graph: LogicalGraph, operator: OperatorNode) -> list[str]:
    names = [name for reference in operator.inputs for name in graph.stream(reference).columns]
    return [name for name in names if name.lower() in operator.late_adds]


def error_columns_collide(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    """A sink of bad records already has a reason in its rows, which its own refusals would replace."""
    connected = set(graph.references())
    for id_, sink in graph.sinks.items():
        names = [f"`{name}`" for name in REASON_COLUMNS if name in sink.stream.columns]
        if names and Reference(id_, ERRORS) in connected:
            hint = "Give them other names with a map before, or leave the port unconnected."
            message = f"`{id_}.errors` adds {' and '.join(names)}, and what `{id_}` reads has that already"
            yield Problem("name_collision", message, hint, ("sinks", id_), at_key=True)


def backfill_never_ends(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    """A backfill reads what is there and ends, which a source that makes events for ever does not let it."""
    for id_, source in graph.sources.items() if draft.fields.mode == "backfill" else ():
        options, connector = source.definition.options, source.definition.connector
        if options is not None and options.endless:
            hint = "Give it a `count`, or leave `mode: backfill` out."
            message = f"`mode: backfill` ends, and `{id_}` never does"
            yield Problem("endless_source", message, hint, ("sources", id_, connector), at_key=True)


def side_ports_not_connected(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    connected = {(reference.node, reference.port) for reference in graph.references()}
    for section, nodes in (("sources", graph.sources), ("operators", graph.operators)):
        for id_, node in nodes.items():
            for port in node.ports:
                if port in SIDE_PORTS and (id_, port) not in connected:
                    yield _not_connected(section, id_, port)


def _not_connected(section: str, id_: str, port: str) -> Problem:
    what = "records that cannot be read" if port == ERRORS else "events that come too late"
    message = f"{what} are counted but not kept: nothing reads `{id_}.{port}`"
    hint = f"Add a sink with `input: {id_}.{port}` to keep them."
    return Problem("port_not_connected", message, hint, (section, id_), at_key=True, severity="warning")


def nothing_unused(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    """Sources and operators that feed no sink, and ports of a branch that nothing reads."""
    used: set[str] = set()
    for sink in graph.sinks.values():
        used |= graph.above(sink.input.node)
    for section, nodes in (("sources", graph.sources), ("operators", graph.operators)):
        for id_ in nodes:
            if id_ not in used:
                message, hint = f"`{id_}` feeds no sink and will not run", "Remove it, or add a sink that reads it."
                yield Problem("unused", message, hint, (section, id_), at_key=True, severity="warning")


def branch_ports_unused(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    connected = {(reference.node, reference.port) for reference in graph.references()}
    for id_, operator in graph.operators.items():
        named = [port for port in operator.ports if port != MAIN and port not in SIDE_PORTS]
        for port in named:
            if (id_, port) not in connected:
                message = f"events of `{id_}.{port}` are dropped: nothing reads that port"
                path = ("operators", id_, "when", port)
                hint = "Read the port, or use a filter."
                yield Problem("unused", message, hint, path, at_key=True, severity="warning")
