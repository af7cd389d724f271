"""The files sink's ledger: a folder with the attempt that may write and one list of files per committed epoch.

<path>/_tidemark/<lineage>/<sink>/attempt.json     who may write
                                  lock             held while an attempt takes over or commits
                                  epochs/N.json    the list of epoch N: its existence is the commit
                                  staging/N-A-T/   what Spark wrote for epoch N under attempt A, try T

Every method but `take_over`, `held` and `exclusive` expects its caller to hold the lock where another driver matters.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.files.commit_lock import locked
from tidemark.connectors.turns import check_new, fenced, is_older
from tidemark.durable import make_folder, sync, write_atomically
from tidemark.errors import StateFault

_KEPT_EPOCHS = 3


@dataclass(frozen=True)
class Manifest:
    """An epoch's list. `files` are pairs: the name in `staging`, the name under the sink's path."""

    epoch: int
    attempt: int
    rows: int
    staging: str
    files: tuple[tuple[str, str], ...]


class FilesLedger:
    def __init__(self, context: SinkContext, path: Path) -> None:
        self._context = context
        self._path = path
        self._folder = path / "_tidemark" / context.lineage / context.sink
        self._epochs = self._folder / "epochs"
        self._staging = self._folder / "staging"
        self._attempt = self._folder / "attempt.json"
        self._tries = 0

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with locked(self._folder / "lock", self._context.sink):
            yield

    def take_over(self) -> int | None:
        """Fences older attempts, completes the last commit, clears what was staged; the last epoch held."""
        make_folder(self._epochs)
        with self.exclusive():
            attempt = self._stored_attempt()
            if is_older(self._context, attempt):
                raise fenced(self._context, attempt)
            write_atomically(self._attempt, json.dumps({"job": self._context.job, "attempt": self._context.attempt}))
            last = self.last_epoch()
            if last is not None:
                self.publish(self._load(last))
            self._clear(self._staging)
        return last

    def fresh_staging(self, epoch: int) -> Path:
        """Where Spark is to write: a name of its own for every try, as tasks of a failed one may still be writing."""
        self.check_turn(epoch)
        make_folder(self._staging)
        own = f"{epoch:010d}-{self._context.attempt}"
        for earlier_try in self._staging.glob(f"{own}-*"):
            self._clear(earlier_try)
        self._tries += 1
        return self._staging / f"{own}-{self._tries}"

    def last_epoch(self) -> int | None:
        return max((int(path.stem) for path in self._epochs.glob("[0-9]*.json")), default=None)

    def held(self, epoch: int) -> int | None:
        """The epoch's row count; its files are all in place when this returns."""
        attempt = self._stored_attempt()
        if is_older(self._context, attempt):
            raise fenced(self._context, attempt)
        if not self._list_of(epoch).exists():
            return None
        manifest = self._load(epoch)
        if (self._staging / manifest.staging).exists():
            with self.exclusive():
                self.publish(manifest)
        return manifest.rows

    def check_turn(self, epoch: int) -> None:
        """Raises Fenced when another attempt has taken over, StateFault when `epoch` is not a new one."""
        attempt = self._stored_attempt()
        if attempt != self._context.attempt:
            raise fenced(self._context, attempt)
        check_new(self._context, self.last_epoch(), epoch)

    def prepare_targets(self, manifest: Manifest) -> None:
        for _, final in manifest.files:
            make_folder((self._path / final).parent)

    def commit(self, manifest: Manifest) -> None:
        write_atomically(self._list_of(manifest.epoch), json.dumps(asdict(manifest), indent=1))

    def publish(self, manifest: Manifest) -> None:
        """Renames what the list names; may be repeated. A file that is not staged any more was renamed before."""
        staging = self._staging / manifest.staging
        self.prepare_targets(manifest)
        for staged, final in manifest.files:
            if (staging / staged).exists():
                (staging / staged).replace(self._path / final)
        for folder in {(self._path / final).parent for _, final in manifest.files}:
            sync(folder)
        self._clear(staging)
        self._prune()

    def _prune(self) -> None:
        lists = sorted(self._epochs.glob("[0-9]*.json"), key=lambda path: int(path.stem))
        for path in lists[:-_KEPT_EPOCHS]:
            path.unlink()

    def _list_of(self, epoch: int) -> Path:
        return self._epochs / f"{epoch:010d}.json"

    def _load(self, epoch: int) -> Manifest:
        content = self._json(self._list_of(epoch))
        return Manifest(**{**content, "files": tuple((staged, final) for staged, final in content["files"])})

    def _stored_attempt(self) -> int | None:
        if not self._attempt.exists():
            return None
        attempt: int = self._json(self._attempt)["attempt"]
        return attempt

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StateFault(f"the ledger file {path} is damaged", step=self._context.sink) from error
        return content

    @staticmethod
    def _clear(folder: Path) -> None:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
