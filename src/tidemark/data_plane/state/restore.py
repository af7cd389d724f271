"""A new job from a savepoint. The state of the job appears whole, or the job stays without any."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.data_plane.state.rescale import last_epochs, spread
from tidemark.data_plane.state.savepoint import QUERIES
from tidemark.errors import NotFresh
from tidemark.generations import Generations
from tidemark.protocol.start import Restore
from tidemark.savepoints.manifest import Manifest
from tidemark.savepoints.storage import Storage, storage_at
from tidemark.savepoints.verify import checked, manifest_in


def restore(plan: ExecutionPlan, wanted: Restore, generations: Generations, spark: SparkSession) -> None:
    """Raises SavepointDamaged or NotFresh, and then nothing was changed."""
    storage = storage_at(wanted.location)
    manifest = manifest_in(storage, wanted.location)
    _check_fits(manifest, plan)
    with generations.draft() as draft:
        _fetch(storage, manifest, draft)
        state = draft / QUERIES
        for query in plan.queries:
            checkpoint = Checkpoint(state / query.id, query.sources)
            checkpoint.forget_sinks()
            if wanted.parallelism is not None:
                spread(checkpoint, wanted.parallelism, spark)
        generations.switch(state, manifest.savepoint_id, last_epochs(plan, state), manifest.first_started_at)


def _check_fits(manifest: Manifest, plan: ExecutionPlan) -> None:
    for query in plan.queries:
        saved = manifest.queries.get(query.id)
        if saved is not None and saved.epoch is not None and saved.state_signature != query.state_signature:
            raise NotFresh(
                f"the savepoint holds state of query {query.id!r} that has another shape than this definition",
                hint="restore it with the definition it was taken with, then upgrade the job",
                step=query.id,
            )


def _fetch(storage: Storage, manifest: Manifest, target: Path) -> None:
    """Checks every file while it is copied."""
    (target / QUERIES).mkdir()
    for file in manifest.files:
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as copy:
            copy.writelines(checked(storage, file))
