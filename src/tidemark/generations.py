"""Which state of a job counts. One pointer covers all its queries, so a rescale or a restore switches them in one step.

A job begins with its queries right in its state folder. Each later generation is a hidden folder beside them.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tidemark.durable import sync, sync_tree, write_atomically
from tidemark.errors import StateFault

_POINTER = "current.json"
_FOLDER = ".generation-"
_DRAFT = ".draft-"


class Pointer(BaseModel):
    """`origin` says where a generation came from: a savepoint's id, or `rescale`.

    `base` is the last epoch of each query that it was made with. `first_started_at` is that of the job that a
    savepoint was taken of: what depends on it must go on as it was.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str = "."
    previous: str | None = None
    origin: str | None = None
    base: dict[str, int] = Field(default_factory=dict)
    first_started_at: datetime | None = None


class Generations:
    """The state folder of one job. Only the driver that holds its lock changes anything."""

    def __init__(self, state: Path) -> None:
        self._state = state

    @property
    def pointer(self) -> Pointer:
        try:
            return Pointer.model_validate_json((self._state / _POINTER).read_bytes())
        except FileNotFoundError:
            return Pointer()
        except ValidationError as problem:
            raise StateFault(
                f"{self._state / _POINTER} is damaged", hint="restore a savepoint, or start again with --fresh"
            ) from problem

    @property
    def current(self) -> Path:
        """The folder that holds a folder per query."""
        return self._state / self.pointer.folder

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """An empty folder to build a generation in; gone at the end unless `switch` took it."""
        folder = self._state / f"{_DRAFT}{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def switch(
        self, draft: Path, origin: str, base: Mapping[str, int], first_started_at: datetime | None = None
    ) -> None:
        """Makes a draft the state that counts. The one before is kept until `forget_others`."""
        before = self.pointer
        folder = f"{_FOLDER}{uuid.uuid4().hex[:12]}"
        sync_tree(draft)
        draft.rename(self._state / folder)
        sync(self._state)
        self._point(
            Pointer(
                folder=folder,
                previous=before.folder,
                origin=origin,
                base=dict(base),
                first_started_at=first_started_at or before.first_started_at,
            )
        )

    def fall_back(self) -> None:
        """Makes the state before the last switch count again."""
        now = self.pointer
        if now.previous is not None:
            self._point(Pointer(folder=now.previous, first_started_at=now.first_started_at))

    def forget_others(self) -> None:
        """Removes what no longer counts, and what a killed driver left half made."""
        now = self.pointer
        if now.previous is not None:
            self._point(now.model_copy(update={"previous": None}))
        self.clear_drafts()
        for folder in self._state.glob(f"{_FOLDER}*"):
            if folder.name != now.folder:
                shutil.rmtree(folder)
        if now.folder != ".":
            for folder in self._state.iterdir():
                if folder.is_dir() and not folder.name.startswith("."):
                    shutil.rmtree(folder)

    def clear_drafts(self) -> None:
        for leftover in self._state.glob(f"{_DRAFT}*"):
            shutil.rmtree(leftover)

    def _point(self, pointer: Pointer) -> None:
        write_atomically(self._state / _POINTER, pointer.model_dump_json())
