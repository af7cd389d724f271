"""Which queries can get state of a new shape by reading their input again, so that nothing is delivered twice."""

from __future__ import annotations

from tidemark.compiler.plan.plan import (
    AggregatePlan,
    DedupPlan,
    ExecutionPlan,
    QueryPlan,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    WindowPlan,
)


def rebuildable_window(plan: ExecutionPlan, query: QueryPlan) -> TumblingWindow | SlidingWindow | None:
    """The one window of a query that can be rebuilt; None for any other query."""
    stateful = _stateful(plan, query)
    window = stateful[0].window if len(stateful) == 1 and isinstance(stateful[0], WindowPlan) else None
    return window if isinstance(window, TumblingWindow | SlidingWindow) else None


def why_not_rebuildable(plan: ExecutionPlan, query: QueryPlan) -> str | None:
    """What keeps a query from being rebuilt, for people; None when nothing does.

    An event belongs to a tumbling or sliding window by its time alone, so reading again what can be in an open window
    gives its content. What a session, a dedup or a running aggregate holds may depend on events of any age.
    """
    if rebuildable_window(plan, query) is not None:
        return None
    stateful = _stateful(plan, query)
    if not stateful:
        return f"query {query.id} has no state"
    if len(stateful) > 1:
        return f"query {query.id} has several stateful operators: {', '.join(each.id for each in stateful)}"
    (only,) = stateful
    return f"{only.id} is a {_kind(only)}, whose state may depend on events of any age"


def too_far_back(query: QueryPlan) -> str:
    """What keeps a query from being rebuilt when the epochs that are remembered are younger than its open windows."""
    return f"the epochs that are known of query {query.id} do not reach back to the beginning of its windows"


def _kind(operator: AggregatePlan | DedupPlan | WindowPlan) -> str:
    if isinstance(operator, WindowPlan) and isinstance(operator.window, SessionWindow):
        return "session window"
    return "running aggregate" if isinstance(operator, AggregatePlan) else operator.type


def _stateful(plan: ExecutionPlan, query: QueryPlan) -> list[AggregatePlan | DedupPlan | WindowPlan]:
    operators = (plan.operators[node] for node in query.operators)
    return [each for each in operators if isinstance(each, AggregatePlan | DedupPlan | WindowPlan)]
