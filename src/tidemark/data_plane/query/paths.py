"""Which way rows take through the plan of a query, from ports to sinks. No frames are needed to know it."""

from __future__ import annotations

from tidemark.compiler.plan.plan import AggregatePlan, DedupPlan, ExecutionPlan, QueryPlan, SinkPlan, WindowPlan
from tidemark.data_plane.query.lowering.aggregates import ORDERED

# What puts the rows of a keyed sink in order.
ORDER = ("_event_time", "_event_id")
SIDE_PORTS = ("late", "errors")


def split_reference(reference: str) -> tuple[str, str]:
    """`node` or `node.port` as (node, port)."""
    node, _, port = reference.partition(".")
    return node, port or "main"


def applied_in_order(sink: SinkPlan, plan: ExecutionPlan) -> bool:
    """Whether several rows of a key may come in one epoch, so that the last in event time must be written last."""
    if not sink.options.get("key") or sink.options.get("mode") == "append":
        return False
    node, port = split_reference(sink.input)
    return port != "main" or not isinstance(plan.operators.get(node), WindowPlan | AggregatePlan)


def reads_a_node_twice(plan: ExecutionPlan, query: QueryPlan) -> bool:
    """Whether some source or operator is read by several ways, so that it stands several times in Spark's plan."""
    read = [split_reference(reference)[0] for node in query.operators for reference in plan.operators[node].inputs]
    return len(read) > len(set(read))


def side_origins(plan: ExecutionPlan, query: QueryPlan) -> dict[str, str]:
    """The sinks that hang, directly or through operators, on a side port, and that port."""
    found = ((sink, _side_origin(plan, query, plan.sinks[sink].input)) for sink in query.sinks)
    return {sink: origin for sink, origin in found if origin}


def _side_origin(plan: ExecutionPlan, query: QueryPlan, reference: str) -> str | None:
    node, port = split_reference(reference)
    if port in SIDE_PORTS:
        return reference
    return _side_origin(plan, query, plan.operators[node].inputs[0]) if node in query.side_operators else None


def main_sinks(plan: ExecutionPlan, query: QueryPlan) -> list[SinkPlan]:
    """The sinks that do not hang on a side port."""
    beside = side_origins(plan, query)
    return [plan.sinks[sink] for sink in query.sinks if sink not in beside]


def needs_event_ids(plan: ExecutionPlan, query: QueryPlan) -> bool:
    """Whether anything on the main path looks at `_event_id`: by name, to break ties, or to put rows in order."""
    operators = [plan.operators[node] for node in query.operators]
    sinks = main_sinks(plan, query)
    aggregates = [item for operator in operators for item in getattr(operator, "aggregate", ())]
    return (
        any("_event_id" in node.model_dump_json() for node in (*operators, *sinks))
        or any(isinstance(operator, DedupPlan) for operator in operators)
        or any(item.function in ORDERED for item in aggregates)
        or any(applied_in_order(sink, plan) for sink in sinks)
    )
