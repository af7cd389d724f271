"""Another parallelism: the state of every query is spread anew on a copy, then the job switches to the copies."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.data_plane.spark_internals import repartition_state
from tidemark.data_plane.state.snapshot import snapshot
from tidemark.generations import Generations

ORIGIN = "rescale"


def checkpoints(plan: ExecutionPlan, state: Path) -> dict[str, Checkpoint]:
    return {query.id: Checkpoint(state / query.id, query.sources) for query in plan.queries}


def last_epochs(plan: ExecutionPlan, state: Path) -> dict[str, int]:
    """The last committed epoch of each query that has one."""
    found = {id_: each.last_committed() for id_, each in checkpoints(plan, state).items()}
    return {id_: epoch for id_, epoch in found.items() if epoch is not None}


def needs_rescale(plan: ExecutionPlan, generations: Generations, parallelism: int) -> bool:
    found = checkpoints(plan, generations.current).values()
    return any(_is_stateful(each) and each.parallelism() != parallelism for each in found)


def rescale(plan: ExecutionPlan, parallelism: int, generations: Generations, spark: SparkSession) -> None:
    """No epoch may have begun that is not committed: in the copy its input would be read again, in another epoch."""
    with generations.draft() as draft:
        for query in plan.queries:
            snapshot(generations.current / query.id, draft / query.id)
            spread(Checkpoint(draft / query.id, query.sources), parallelism, spark)
        generations.switch(draft, ORIGIN, last_epochs(plan, draft))


def spread(checkpoint: Checkpoint, parallelism: int, spark: SparkSession) -> None:
    """Gives the state of a checkpoint that nobody uses that many key groups; nothing to do if it has them, or none."""
    epoch = checkpoint.last_committed()
    if epoch is None or not _is_stateful(checkpoint) or checkpoint.parallelism() == parallelism:
        return
    repartition_state(spark, str(checkpoint.folder), parallelism)
    checkpoint.rescaled(epoch)


def _is_stateful(checkpoint: Checkpoint) -> bool:
    return checkpoint.last_committed() is not None and (checkpoint.folder / "state").is_dir()
