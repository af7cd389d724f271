"""A plan for people: the way of an event through each query, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemark.compiler.graph.operators.table import OPERATORS_BY_NAME
from tidemark.compiler.plan.describe import describe_operator, describe_source, duration, show_columns
from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan, SinkPlan
from tidemark.connectors.catalogue import BY_NAME


def explain_json(plan: ExecutionPlan) -> dict[str, Any]:
    """The same facts as the text, for programs."""
    return {
        "job": plan.job,
        "mode": plan.mode,
        "parallelism": plan.parallelism,
        "epoch": plan.epoch.model_dump(),
        "shared": shared_prefixes(plan),
        "queries": [_query_json(plan, query) for query in plan.queries],
    }


def explain_text(plan: ExecutionPlan) -> str:
    return "\n".join((*_head(plan), *(line for query in plan.queries for line in _query_text(plan, query)))) + "\n"


def shared_prefixes(plan: ExecutionPlan) -> dict[str, list[str]]:
    """Sources and operators that more than one query passes through, with those queries."""
    readers: dict[str, list[str]] = {}
    for query in plan.queries:
        for id_ in (*query.sources, *query.operators):
            readers.setdefault(id_, []).append(query.id)
    return {id_: queries for id_, queries in readers.items() if len(queries) > 1}


def _head(plan: ExecutionPlan) -> Iterator[str]:
    count = len(plan.queries)
    yield f"job {plan.job}: {count} {'query' if count == 1 else 'queries'}, mode {plan.mode}"
    interval = duration(plan.epoch.interval_ms) if plan.epoch.interval_ms else "at once"
    parallelism = plan.parallelism or "one per core"
    yield f"  key groups: {parallelism}; epochs: {interval}, at most {plan.epoch.max_events} events each"
    for id_, queries in shared_prefixes(plan).items():
        yield f"  shared: {id_} is read by the queries {', '.join(queries)}"


def _query_text(plan: ExecutionPlan, query: QueryPlan) -> Iterator[str]:
    yield ""
    yield f"query {query.id}"
    for id_ in query.sources:
        yield from _step(f"source {id_}", describe_source(plan.sources[id_]))
    for id_ in query.operators:
        yield from _step(f"{plan.operators[id_].type} {id_}", describe_operator(plan.operators[id_]))
    for id_ in query.side_operators:
        operator = plan.operators[id_]
        yield from _step(f"{operator.type} {id_} (side port)", describe_operator(operator))
    for id_ in query.sinks:
        yield from _step(f"sink {id_}", _sink_lines(plan.sinks[id_]))
    open_ports = [port for port, connected in ports(plan, query).items() if not connected]
    if open_ports:
        yield f"  counted only, not kept: {', '.join(open_ports)}"


def _step(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"  {title}"
    yield from (f"      {line}" for line in lines)


def _sink_lines(sink: SinkPlan) -> Iterator[str]:
    yield f"{sink.connector} from {sink.input}, guarantee: {BY_NAME[sink.connector].guarantee}"
    yield f"columns: {show_columns(sink.columns)}"


def ports(plan: ExecutionPlan, query: QueryPlan) -> dict[str, bool]:
    """The side ports this query accounts for, and whether something reads each."""
    read = {sink.input for sink in plan.sinks.values()}
    read |= {reference for operator in plan.operators.values() for reference in operator.inputs}
    sources = [f"{id_}.errors" for id_ in query.sources if id_ in query.accounts]
    counting = [id_ for id_ in query.operators if "late" in OPERATORS_BY_NAME[plan.operators[id_].type].ports]
    late = [f"{id_}.late" for id_ in counting if id_ in query.accounts]
    refused = [f"{id_}.errors" for id_ in query.sinks if plan.sinks[id_].refuses]
    return {port: port in read for port in (*sources, *late, *refused)}


def _query_json(plan: ExecutionPlan, query: QueryPlan) -> dict[str, Any]:
    return {
        "id": query.id,
        "terminal": query.terminal,
        "sources": [plan.sources[id_].model_dump(mode="json") for id_ in query.sources],
        "operators": [plan.operators[id_].model_dump(mode="json") for id_ in query.operators],
        "side_operators": [plan.operators[id_].model_dump(mode="json") for id_ in query.side_operators],
        "sinks": [_sink_json(plan.sinks[id_]) for id_ in query.sinks],
        "side_ports": ports(plan, query),
        "accounts": list(query.accounts),
        "state_signature": query.state_signature,
    }


def _sink_json(sink: SinkPlan) -> dict[str, Any]:
    return {**sink.model_dump(mode="json"), "guarantee": BY_NAME[sink.connector].guarantee}
