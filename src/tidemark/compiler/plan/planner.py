"""A graph to the plan the data plane runs: which part of it is which query, and what each sink writes.

A query is everything above one terminal, a node that feeds a sink by its main or a named port. The sinks of a
side port belong to the first query that holds the node with that port.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.compiler.definition.job import JobDefinition
from tidemark.compiler.definition.model import milliseconds
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.node import ERRORS, Reference, SinkNode, SourceNode, as_columns
from tidemark.compiler.plan.plan import (
    EpochPolicy,
    ExecutionPlan,
    QueryPlan,
    SinkPlan,
    SourcePlan,
    WatermarkPolicy,
)
from tidemark.compiler.plan.signature import state_signature


@dataclass
class _Query:
    """A query while it is put together; ids only."""

    terminal: str
    nodes: set[str]
    side_operators: set[str] = field(default_factory=set)
    sinks: set[str] = field(default_factory=set)


def make_plan(definition: JobDefinition, graph: LogicalGraph) -> ExecutionPlan:
    """The plan of a sound graph; nodes that feed no sink are not in it."""
    queries = _queries(graph)
    used = {id_ for query in queries for id_ in query.nodes | query.side_operators}
    return ExecutionPlan(
        job=definition.name,
        mode="backfill" if definition.mode == "backfill" else "microbatch",
        parallelism=definition.parallelism,
        epoch=EpochPolicy(interval_ms=milliseconds(definition.epoch.interval), max_events=definition.epoch.max_events),
        sink_retry_ms=milliseconds(definition.sink_retry),
        sources={id_: _source(node) for id_, node in graph.sources.items() if id_ in used},
        operators={id_: node.plan() for id_, node in graph.operators.items() if id_ in used},
        sinks={id_: _sink(node, graph) for id_, node in graph.sinks.items()},
        queries=_planned(graph, queries),
    )


def _queries(graph: LogicalGraph) -> list[_Query]:
    queries: dict[str, _Query] = {}
    for sink in graph.sinks.values():
        if sink.stream.side is None:
            terminal = sink.input.node
            query = queries.setdefault(terminal, _Query(terminal, graph.above(terminal)))
            query.sinks.add(sink.id)
    for producer, sink in _side_sinks(graph):
        _attach(producer, sink, graph, queries)
    return list(queries.values())


def _side_sinks(graph: LogicalGraph) -> list[tuple[str, SinkNode]]:
    """Sinks of side ports with the node that has the port, the lowest first: its query holds those above it.

    Those of refused rows come last: they belong to the query of the sink that the rows were meant for.
    """
    found = [(sink.stream.side.node, sink) for sink in graph.sinks.values() if sink.stream.side]
    return sorted(found, key=lambda pair: 1 if pair[0] in graph.sinks else -len(graph.above(pair[0])))


def _attach(producer: str, sink: SinkNode, graph: LogicalGraph, queries: dict[str, _Query]) -> None:
    """Gives the sink of a side port to the query that accounts for the node with that port."""
    query = next((query for query in queries.values() if producer in query.nodes | query.sinks), None)
    if query is None:
        query = queries.setdefault(producer, _Query(producer, graph.above(producer)))
    query.sinks.add(sink.id)
    query.side_operators |= graph.above(sink.input.node) - graph.above(producer)


def _planned(graph: LogicalGraph, queries: list[_Query]) -> tuple[QueryPlan, ...]:
    plans: list[QueryPlan] = []
    counted: set[str] = set()
    for query in queries:
        held = query.nodes | query.side_operators
        accounts = tuple(id_ for id_ in (*graph.sources, *graph.operators) if id_ in held - counted)
        counted |= held
        plans.append(_plan(graph, query, accounts))
    return tuple(plans)


def _plan(graph: LogicalGraph, query: _Query, accounts: tuple[str, ...]) -> QueryPlan:
    sources = tuple(id_ for id_ in graph.sources if id_ in query.nodes)
    operators = tuple(id_ for id_ in graph.operators if id_ in query.nodes)
    return QueryPlan(
        id=query.terminal,
        terminal=query.terminal,
        sources=sources,
        operators=operators,
        side_operators=tuple(id_ for id_ in graph.operators if id_ in query.side_operators),
        sinks=tuple(id_ for id_ in graph.sinks if id_ in query.sinks),
        accounts=accounts,
        state_signature=state_signature(graph, sources, operators),
    )


def _source(node: SourceNode) -> SourcePlan:
    definition = node.definition
    return SourcePlan(
        id=node.id,
        connector=definition.connector,
        options=dict(node.options),
        format=node.record_format,
        columns=as_columns(node.columns),
        event_id=definition.event_id,
        key=definition.key,
        event_time=definition.event_time,
        watermark=WatermarkPolicy(
            delay_ms=milliseconds(definition.watermark.delay),
            idle_timeout_ms=milliseconds(definition.watermark.idle_timeout),
            max_future_ms=milliseconds(definition.watermark.max_future),
        ),
        on_error=definition.on_error,
        max_error_rate=definition.max_error_rate,
        endless=definition.options is not None and definition.options.endless,
    )


def _sink(node: SinkNode, graph: LogicalGraph) -> SinkPlan:
    options = node.definition.options
    return SinkPlan(
        id=node.id,
        connector=node.definition.connector,
        options=options.planned() if options else {},
        input=str(node.input),
        columns=as_columns(node.stream.columns),
        refuses=node.refuses,
        keeps_refused=Reference(node.id, ERRORS) in set(graph.references()),
    )
