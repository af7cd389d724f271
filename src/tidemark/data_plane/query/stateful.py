"""Where the operators of a plan end up in Spark: the number of their state, and the stage that runs them."""

from __future__ import annotations

from tidemark.compiler.plan.plan import AggregatePlan, DedupPlan, ExecutionPlan, QueryPlan, WindowPlan
from tidemark.data_plane.query.paths import split_reference

STATEFUL = (AggregatePlan, DedupPlan, WindowPlan)


def stateful_operators(plan: ExecutionPlan, query: QueryPlan) -> tuple[str, ...]:
    """The stateful operators in the order in which Spark numbers their state: from the last one upwards.

    One that is read by several ways stands there several times, as it does in Spark's plan.
    """
    return tuple(_from_above(plan, query.terminal))


def _from_above(plan: ExecutionPlan, node: str) -> list[str]:
    operator = plan.operators.get(node)
    if operator is None:
        return []
    above = [found for reference in operator.inputs for found in _from_above(plan, split_reference(reference)[0])]
    return [node, *above] if isinstance(operator, STATEFUL) else above


def stage_depths(plan: ExecutionPlan, query: QueryPlan) -> dict[str, int]:
    """How many shuffles lie behind each source and operator: 0 for those in Spark's last stage.

    A stateful operator runs behind its shuffle. A node that is read by several ways counts by the longest.
    """
    depths: dict[str, int] = {}

    def visit(node: str, depth: int) -> None:
        depths[node] = max(depth, depths.get(node, 0))
        operator = plan.operators.get(node)
        if operator is not None:
            for reference in operator.inputs:
                visit(split_reference(reference)[0], depth + isinstance(operator, STATEFUL))

    visit(query.terminal, 0)
    return depths
