"""A fingerprint of everything that shapes the state of a query.

Equal signatures mean that kept state fits: a changed filter or a new sink keeps it, a changed aggregate does not.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.node import OperatorNode, SourceNode
from tidemark.compiler.plan.plan import DedupPlan

_NOT_STATE = {"inputs", "output"}


def state_signature(graph: LogicalGraph, sources: tuple[str, ...], operators: tuple[str, ...]) -> str:
    """Over the sources and the stateful operators of a query, in its order; parallelism is not part of it."""
    shape = {
        "sources": [_source(graph.sources[id_]) for id_ in sources],
        "stateful": [_operator(graph, graph.operators[id_]) for id_ in operators if graph.operators[id_].stateful],
    }
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]


def _source(node: SourceNode) -> dict[str, Any]:
    shape = {"id": node.id, "connector": node.definition.connector, "partitions": node.options.get("partitions")}
    topics = node.options.get("topics")
    return {**shape, "topics": topics} if topics else shape


def _operator(graph: LogicalGraph, node: OperatorNode) -> dict[str, Any]:
    plan = node.plan()
    shape = plan.model_dump(mode="json", exclude=_NOT_STATE)
    shape["reads_from"] = sorted(id_ for id_ in graph.above(node.id) if id_ in graph.sources)
    if isinstance(plan, DedupPlan):
        scope = graph.stream(node.inputs[0]).scope
        shape["columns"] = {name: str(type_) for name, type_ in scope.items() if name in plan.by}
    return shape
