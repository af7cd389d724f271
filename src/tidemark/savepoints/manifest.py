"""What a savepoint says of itself: where the job stood, what it was, and every file with its hash.

The manifest is written last, so a folder without one is no savepoint, and it carries a hash of its own.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.errors import SavepointDamaged
from tidemark.watermarks import smallest_watermark

MANIFEST = "manifest.json"


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SavedFile(Frozen):
    """`path` is relative to the savepoint, with slashes."""

    path: str
    size: int
    sha256: str

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        if not path or path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
            raise ValueError("a path that leads out of the savepoint")
        return path


class SavedQuery(Frozen):
    """Where one query stood: its last committed epoch, and by source the offset up to which it had read.

    `parallelism` is None for a query that had not begun.
    """

    epoch: int | None
    watermark: datetime | None
    offsets: dict[str, Any] = Field(default_factory=dict)
    state_signature: str
    parallelism: int | None = None


class Manifest(Frozen):
    """`checksum` covers everything else in here, and through the hashes of the files the whole savepoint."""

    version: Literal[1] = 1
    savepoint_id: str
    job: str
    lineage: str
    attempt: int
    taken_at: datetime
    first_started_at: datetime
    tidemark: str
    spark: str
    definition: str | None = None
    plan: ExecutionPlan
    queries: dict[str, SavedQuery]
    files: tuple[SavedFile, ...]
    checksum: str = ""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def watermark(self) -> datetime | None:
        """The smallest of the queries'; None while one of them had none."""
        return smallest_watermark(query.watermark for query in self.queries.values())

    def sealed(self) -> Manifest:
        return self.model_copy(update={"checksum": _checksum(self)})

    def summary(self) -> dict[str, Any]:
        """What a list of savepoints shows."""
        queries = {
            id_: query.model_dump(mode="json", include={"epoch", "watermark", "offsets", "parallelism"})
            for id_, query in self.queries.items()
        }
        return {
            "savepoint_id": self.savepoint_id,
            "job": self.job,
            "taken_at": self.taken_at.isoformat(),
            "epoch": max((query.epoch for query in self.queries.values() if query.epoch is not None), default=None),
            "watermark": self.watermark.isoformat() if self.watermark else None,
            "queries": queries,
            "bytes": self.bytes,
            "files": len(self.files),
            "checksum": self.checksum,
        }


def read_manifest(text: bytes) -> Manifest:
    """Raises SavepointDamaged for anything but what `sealed` made."""
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as problem:
        raise damaged(f"its manifest cannot be read ({problem.error_count()} problems)") from problem
    if manifest.checksum != _checksum(manifest):
        raise damaged("its manifest was changed")
    return manifest


def damaged(what: str) -> SavepointDamaged:
    return SavepointDamaged(
        f"the savepoint is damaged: {what}", hint="use another savepoint; nothing was changed by trying this one"
    )


def _checksum(manifest: Manifest) -> str:
    body = manifest.model_dump(mode="json", exclude={"checksum"})
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
