"""Whether a savepoint is whole, decided before anything relies on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.connectors.catalogue import BY_NAME
from tidemark.errors import UsageError
from tidemark.savepoints.manifest import MANIFEST, Manifest, SavedFile, damaged, read_manifest
from tidemark.savepoints.storage import Storage, storage_at


def load_manifest(location: str) -> Manifest:
    """The manifest alone, checked against its own hash. Raises UsageError when there is no savepoint."""
    return manifest_in(storage_at(location), location)


def verify(location: str) -> Manifest:
    """Reads every byte. Raises SavepointDamaged, naming the file, when anything is missing, changed or too much."""
    storage = storage_at(location)
    manifest = manifest_in(storage, location)
    unknown = set(storage.files()) - {MANIFEST} - {file.path for file in manifest.files}
    if unknown:
        raise damaged(f"{min(unknown)} does not belong to it")
    for file in manifest.files:
        for _ in checked(storage, file):
            pass
    return manifest


def manifest_in(storage: Storage, location: str) -> Manifest:
    if not storage.exists():
        raise UsageError(
            f"there is no savepoint at {location}", hint="a savepoint that is being written shows when done"
        )
    try:
        return read_manifest(b"".join(storage.read(MANIFEST)))
    except FileNotFoundError:
        raise damaged("it has no manifest") from None


def checked(storage: Storage, file: SavedFile) -> Iterator[bytes]:
    """The content of a file; raises SavepointDamaged at its end when it is not what was written."""
    digest, size = hashlib.sha256(), 0
    try:
        for block in storage.read(file.path):
            digest.update(block)
            size += len(block)
            yield block
    except FileNotFoundError:
        raise damaged(f"{file.path} is missing") from None
    if size != file.size or digest.hexdigest() != file.sha256:
        raise damaged(f"{file.path} was changed")


def repeated_output(manifest: Manifest, committed: Mapping[str, int | None], plan: ExecutionPlan) -> tuple[str, ...]:
    """The append sinks that would get rows twice if `plan` started from this savepoint.

    `committed` is the last epoch that the job which was saved has committed since, by query; None or no entry for a
    query means that nobody knows, so anything may have been written.
    """
    return tuple(
        sink
        for query in plan.queries
        if (saved := manifest.queries.get(query.id)) and _went_on(saved.epoch, committed.get(query.id))
        for sink in query.sinks
        if _appends(plan, sink)
    )


def _went_on(saved: int | None, committed: int | None) -> bool:
    return committed is None or saved is None or committed > saved


def _appends(plan: ExecutionPlan, sink: str) -> bool:
    options = plan.sinks[sink].options
    if BY_NAME[plan.sinks[sink].connector].guarantee == "none":
        return False
    return not options.get("key") or options.get("mode") == "append"
