"""What one committed epoch of a query tells about its speed and its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan
from tidemark.connectors.connector import CountsOffsets, PartitionOffsets, Source
from tidemark.data_plane.query.stateful import stage_depths, stateful_operators
from tidemark.data_plane.spark_internals import stage_seconds


@dataclass(frozen=True)
class StateSize:
    rows: int
    bytes: int


@dataclass(frozen=True)
class EpochMeasures:
    """`busy` is by source and operator; `offsets` by source and partition, where the source counts."""

    epoch: int
    duration_ms: int
    checkpoint_ms: int
    state: Mapping[str, StateSize] = field(default_factory=dict)
    offsets: Mapping[str, dict[int, PartitionOffsets]] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)

    @property
    def lag(self) -> int | None:
        """Events that wait in the sources that can tell."""
        return sum(self.unread.values()) if self.unread else None


def measure(
    plan: ExecutionPlan,
    query: QueryPlan,
    done: StreamingQueryProgress,
    sources: Mapping[str, Source],
    names: Sequence[str],
    busy: Mapping[str, float],
) -> EpochMeasures:
    """`names` are those of the query's sources in the order of Spark's report."""
    ends = {
        _id(name, query): (_text(source.endOffset), _text(source.latestOffset))
        for name, source in zip(names, done.sources, strict=False)
    }
    counting = {id_: source for id_, source in sources.items() if isinstance(source, CountsOffsets)}
    waiting = {id_: sources[id_].unread(*offsets) for id_, offsets in ends.items()}
    return EpochMeasures(
        epoch=done.batchId,
        duration_ms=done.batchDuration,
        checkpoint_ms=_checkpoint_ms(done),
        state=_state(plan, query, done),
        offsets={id_: counting[id_].offsets(*offsets) for id_, offsets in ends.items() if id_ in counting},
        unread={id_: count for id_, count in waiting.items() if count is not None},
        busy=busy,
    )


def _id(name: str, query: QueryPlan) -> str:
    """A source without a name is known by its place."""
    return query.sources[int(name) % len(query.sources)] if name.isdigit() else name


def _text(offset: str) -> str | None:
    """An offset as the JSON text that the source wrote."""
    return None if offset == "null" else offset


def _checkpoint_ms(done: StreamingQueryProgress) -> int:
    """Writing both log entries, and the slowest operator's commit of its state."""
    logs = done.durationMs.get("walCommit", 0) + done.durationMs.get("commitOffsets", 0)
    return logs + max((operator.commitTimeMs for operator in done.stateOperators), default=0)


def _state(plan: ExecutionPlan, query: QueryPlan, done: StreamingQueryProgress) -> dict[str, StateSize]:
    sizes: dict[str, StateSize] = {}
    for id_, operator in zip(stateful_operators(plan, query), done.stateOperators, strict=False):
        sizes.setdefault(id_, StateSize(operator.numRowsTotal, operator.memoryUsedBytes))
    return sizes


class TaskTimes:
    """The task seconds of the stages of a query's jobs, each job told once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.slots = spark.sparkContext.defaultParallelism
        self._seen = -1

    def since_last_time(self, run_id: str) -> list[list[float]]:
        found = self._spark.sparkContext.statusTracker().getJobIdsForGroup(run_id)
        fresh = sorted(job for job in found if job > self._seen)
        self._seen = max(fresh, default=self._seen)
        return [stage_seconds(self._spark, job) for job in fresh]


def busy_shares(
    plan: ExecutionPlan, query: QueryPlan, jobs: Iterable[Sequence[float]], slots: int, seconds: float
) -> dict[str, float]:
    """The share of all slots that the stage of each source and operator took of an epoch, 0 to 1.

    `jobs` are the task seconds of each stage of the jobs of the epoch, the last stage last. A job whose stages are
    not those of the plan, such as one that reads an epoch again, counts for all.
    """
    depths = stage_depths(plan, query)
    stages = max(depths.values()) + 1
    taken = [0.0] * stages
    for job in jobs:
        if len(job) == stages:
            taken = [total + time for total, time in zip(taken, reversed(job), strict=True)]
        else:
            taken = [total + sum(job) / stages for total in taken]
    limit = max(seconds * slots, 1e-9)
    return {node: round(min(1.0, taken[depth] / limit), 4) for node, depth in depths.items()}
