"""What a changed definition means for the state of a running job: a verdict for every query and operator. Pure.

`kept`: the state has the same shape. `rebuilt`: it has another one, and is made by reading the input again. `lost`:
what held it is gone, or it cannot be rebuilt. A query's state is one thing to Spark, so its stateful operators share
its fate, unless they are gone. `events` says of what is rebuilt how many are read again for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tidemark.compiler.plan.plan import AggregatePlan, DedupPlan, ExecutionPlan, QueryPlan, WindowPlan
from tidemark.compiler.plan.rebuild import why_not_rebuildable
from tidemark.control_plane.jobs.replay import Replay

Fate = Literal["kept", "rebuilt", "lost", "new"]
STATEFUL = (AggregatePlan, DedupPlan, WindowPlan)


@dataclass(frozen=True)
class OperatorVerdict:
    id: str
    verdict: Fate
    reason: str
    events: int | None = None


@dataclass(frozen=True)
class QueryVerdict:
    id: str
    verdict: Fate
    reason: str
    operators: tuple[OperatorVerdict, ...]
    events: int | None = None


ReplayOf = Callable[[ExecutionPlan, QueryPlan], Replay]


def compare(old: ExecutionPlan, new: ExecutionPlan, replay_of: ReplayOf) -> tuple[QueryVerdict, ...]:
    """First the queries of the new plan, then those that only the old one has.

    `replay_of` is asked about a query of the new plan whose window would be rebuilt.
    """
    before = {query.id: query for query in old.queries}
    after = {query.id for query in new.queries}
    verdicts = [_verdict(old, new, before.get(query.id), query, replay_of) for query in new.queries]
    return (*verdicts, *(_gone(old, query) for query in old.queries if query.id not in after))


def lost(verdicts: Sequence[QueryVerdict]) -> Iterator[str]:
    """The ids of the queries and operators whose state would be lost."""
    for query in verdicts:
        if query.verdict == "lost":
            yield query.id
        yield from (
            operator.id for operator in query.operators if operator.verdict == "lost" and operator.id != query.id
        )


def rebuilt(verdicts: Sequence[QueryVerdict]) -> tuple[str, ...]:
    """The queries whose state is made anew."""
    return tuple(query.id for query in verdicts if query.verdict == "rebuilt")


def impossible(verdicts: Sequence[QueryVerdict], new: ExecutionPlan) -> tuple[QueryVerdict, ...]:
    """Queries that the new plan has too, but could not start: with what they keep nor without."""
    still_there = {query.id for query in new.queries}
    return tuple(query for query in verdicts if query.verdict == "lost" and query.id in still_there)


def _verdict(
    old: ExecutionPlan, new: ExecutionPlan, before: QueryPlan | None, query: QueryPlan, replay_of: ReplayOf
) -> QueryVerdict:
    if before is None:
        operators = tuple(OperatorVerdict(id_, "new", "it begins empty") for id_ in _stateful(new, query))
        return QueryVerdict(query.id, "new", "there was no such query", operators)
    if before.state_signature == query.state_signature:
        kept = tuple(OperatorVerdict(id_, "kept", "its state has the same shape") for id_ in _stateful(new, query))
        return QueryVerdict(query.id, "kept", "sources and stateful operators are the same", kept)
    reason = _difference(old, new, before, query)
    obstacle = reason if _reads_others(old, new, before, query) else why_not_rebuildable(new, query)
    replay = Replay(None, obstacle) if obstacle is not None else replay_of(new, query)
    if replay.obstacle is not None:
        gone = tuple(OperatorVerdict(id_, "lost", replay.obstacle) for id_ in _stateful(old, before))
        return QueryVerdict(query.id, "lost", f"it cannot be rebuilt: {replay.obstacle}", gone)
    operators = tuple(_operators(old, new, before, query, replay.events))
    return QueryVerdict(query.id, "rebuilt", reason, operators, replay.events)


def _operators(
    old: ExecutionPlan, new: ExecutionPlan, before: QueryPlan, query: QueryPlan, events: int | None
) -> Iterator[OperatorVerdict]:
    had = _stateful(old, before)
    for id_ in _stateful(new, query):
        if id_ not in had:
            yield OperatorVerdict(id_, "new", "it begins empty")
        elif old.operators[id_] == new.operators[id_]:
            yield OperatorVerdict(id_, "rebuilt", "it did not change, but shares its state with one that did", events)
        else:
            yield OperatorVerdict(id_, "rebuilt", "its state has another shape", events)
    for id_ in had:
        if id_ not in _stateful(new, query):
            yield OperatorVerdict(id_, "lost", "the new definition has no such stateful operator in this query")


def _difference(old: ExecutionPlan, new: ExecutionPlan, before: QueryPlan, query: QueryPlan) -> str:
    if _reads_others(old, new, before, query):
        return "it reads other sources"
    had, has = _stateful(old, before), _stateful(new, query)
    changed = [id_ for id_ in has if id_ not in had or old.operators[id_] != new.operators[id_]]
    names = [*changed, *(id_ for id_ in had if id_ not in has)]
    return f"the shape of its state differs ({', '.join(names) or 'the order of its operators'})"


def _reads_others(old: ExecutionPlan, new: ExecutionPlan, before: QueryPlan, query: QueryPlan) -> bool:
    return before.sources != query.sources or _connectors(old, before) != _connectors(new, query)


def _connectors(plan: ExecutionPlan, query: QueryPlan) -> list[tuple[str, object]]:
    sources = [plan.sources[id_] for id_ in query.sources]
    return [(source.connector, source.options.get("partitions")) for source in sources]


def _gone(old: ExecutionPlan, query: QueryPlan) -> QueryVerdict:
    operators = tuple(OperatorVerdict(id_, "lost", "its query is gone") for id_ in _stateful(old, query))
    return QueryVerdict(query.id, "lost", "the new definition has no such query", operators)


def _stateful(plan: ExecutionPlan, query: QueryPlan) -> tuple[str, ...]:
    return tuple(id_ for id_ in query.operators if isinstance(plan.operators[id_], STATEFUL))
