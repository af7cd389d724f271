"""Savepoints: a hashed copy of every query of a job as of its newest committed epoch, while the job goes on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.data_plane.epoch.progress import to_datetime
from tidemark.data_plane.state.snapshot import snapshot
from tidemark.errors import UsageError
from tidemark.generations import Generations
from tidemark.protocol.messages import RunSpec
from tidemark.savepoints.manifest import MANIFEST, Manifest, SavedFile, SavedQuery
from tidemark.savepoints.storage import Draft, blocks, storage_at
from tidemark.savepoints.verify import load_manifest

QUERIES = "queries"


def take_savepoint(spec: RunSpec, savepoint_id: str, location: str) -> Manifest:
    """Writes a savepoint of the job that `spec` started; asked for again, it answers with the one that is there.

    Killed at any instant it leaves either a whole savepoint or none. Needs no Spark.
    """
    storage = storage_at(location)
    if storage.exists():
        return _existing(location, savepoint_id)
    generations = Generations(Path(spec.state))
    with generations.draft() as copy, storage.write() as draft:
        queries = {query.id: _save(spec, query.id, generations.current, copy / QUERIES) for query in spec.plan.queries}
        files = tuple(_write_file(draft, copy, path) for path in _paths(copy))
        manifest = _manifest(spec, savepoint_id, generations, queries, files)
        draft.write(MANIFEST, iter([manifest.model_dump_json().encode()]))
    return manifest


def _existing(location: str, savepoint_id: str) -> Manifest:
    manifest = load_manifest(location)
    if manifest.savepoint_id != savepoint_id:
        raise UsageError(f"{location} holds another savepoint", hint="choose a folder that does not exist yet")
    return manifest


def _save(spec: RunSpec, query_id: str, state: Path, target: Path) -> SavedQuery:
    query = next(query for query in spec.plan.queries if query.id == query_id)
    epoch = snapshot(state / query_id, target / query_id)
    if epoch is None:
        return SavedQuery(epoch=None, watermark=None, state_signature=query.state_signature)
    saved = Checkpoint(target / query_id, query.sources)
    return SavedQuery(
        epoch=epoch + saved.shift(),
        watermark=to_datetime(saved.record(epoch)["watermark"]["value"]),
        offsets=saved.offsets(epoch),
        state_signature=query.state_signature,
        parallelism=saved.parallelism(),
    )


def _paths(folder: Path) -> list[Path]:
    return sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def _write_file(draft: Draft, root: Path, path: Path) -> SavedFile:
    """Reads the file once: what is hashed is what is written."""
    tally = _Tally()
    relative = path.relative_to(root).as_posix()
    with path.open("rb") as file:
        draft.write(relative, tally.through(blocks(file)))
    return SavedFile(path=relative, size=tally.size, sha256=tally.digest.hexdigest())


@dataclass
class _Tally:
    size: int = 0

    def __post_init__(self) -> None:
        self.digest = hashlib.sha256()

    def through(self, content: Iterator[bytes]) -> Iterator[bytes]:
        for block in content:
            self.digest.update(block)
            self.size += len(block)
            yield block


def _manifest(
    spec: RunSpec,
    savepoint_id: str,
    generations: Generations,
    queries: dict[str, SavedQuery],
    files: tuple[SavedFile, ...],
) -> Manifest:
    return Manifest(
        savepoint_id=savepoint_id,
        job=spec.plan.job,
        lineage=spec.lineage,
        attempt=spec.attempt,
        taken_at=datetime.now(UTC),
        first_started_at=generations.pointer.first_started_at or spec.first_started_at,
        tidemark=version("tidemark"),
        spark=version("pyspark"),
        definition=spec.definition,
        plan=spec.plan,
        queries=queries,
        files=files,
    ).sealed()
