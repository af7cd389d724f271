"""Where a local run keeps what must outlive it: one folder per job, with its lineage, attempts, lock and state.

Every file is replaced whole or appended to under a lock, so a kill at any instant leaves something readable.
What is inside the state folders belongs to the data plane.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ValidationError

from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.durable import write_atomically
from tidemark.errors import AlreadyRunning, DiskFull, NotFresh, StateFault, UsageError
from tidemark.generations import Generations
from tidemark.protocol.messages import RunSpec

FRESH_HINT = "run with --fresh to forget the kept state and start over"


class Lineage(BaseModel):
    """`discards_state` is set while a fresh start still has to remove what the lineage before it left."""

    lineage: str
    first_started_at: datetime
    discards_state: bool = False


class Signature(BaseModel):
    """The shape of a query's state, and the operators to name when it no longer fits."""

    signature: str
    operators: tuple[str, ...]


class JobDirectory:
    """The folder of one job. All but `take_attempt` is meant to be called with the lock held."""

    def __init__(self, home: Path, job: str) -> None:
        self.job = job
        self.root = home / "jobs" / job
        self.state = self.root / "queries"
        self.scratch = self.root / "scratch"
        self.log = self.root / "driver.log"
        self.run_spec = self.root / "run.json"
        self.definition = self.root / "definition.yaml"
        self._lineage = self.root / "lineage.json"
        self._signatures = self.root / "signatures.json"
        self._attempts = self.root / "attempt"
        with _writing(self.state):
            self.state.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the job for this process; the system lets go of it when the process dies."""
        with _open(self.root / "lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunning(
                    f"job {self.job!r} is already running (process {_holder(file)})",
                    hint="stop that run first, or give this job another name",
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield

    def lineage(self, now: datetime) -> Lineage:
        """The kept lineage, else a new one. Raises StateFault when there is state whose lineage is lost."""
        kept = self._read_lineage()
        if kept is None:
            return self._write_lineage(Lineage(lineage=uuid.uuid4().hex, first_started_at=now))
        return self._finish_discarding(kept) if kept.discards_state else kept

    def start_afresh(self, now: datetime) -> Lineage:
        """Forgets the state. Killed before the new lineage is written: not at all; after it: `lineage` goes on."""
        return self._finish_discarding(
            self._write_lineage(Lineage(lineage=uuid.uuid4().hex, first_started_at=now, discards_state=True))
        )

    def take_attempt(self) -> int:
        """The next attempt number, durable before it is returned; no number is ever given twice, whoever else asks."""
        with _writing(self._attempts), _open(self._attempts) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            log = file.read()
            attempt = self._highest_attempt(log) + 1
            torn = b"" if log.endswith(b"\n") or not log else b"\n"
            file.write(torn + _attempt_line(attempt))
            file.flush()
            os.fsync(file.fileno())
        return attempt

    def check_state_fits(self, plan: ExecutionPlan) -> None:
        """Raises NotFresh when a query has state that this plan would read differently."""
        known = self._read_signatures()
        current = Generations(self.state).current
        for query in plan.queries:
            kept = known.get(query.id)
            if kept is None or kept.signature == query.state_signature or not _has_content(current / query.id):
                continue
            names = ", ".join(dict.fromkeys((*kept.operators, *query.operators)))
            raise NotFresh(
                f"query {query.id!r} kept state of another shape than this definition has (operators: {names})",
                hint=FRESH_HINT,
                step=query.id,
            )

    def record_start(self, definition: str, spec: RunSpec) -> None:
        """Keeps what is started: the definition, the shapes of state, and the spec that the driver reads."""
        shapes = self._read_signatures() | _signatures_of(spec.plan)
        write_durably(self._signatures, json.dumps({name: shape.model_dump() for name, shape in shapes.items()}))
        write_durably(self.definition, definition)
        write_durably(self.run_spec, spec.model_dump_json())

    def empty_scratch(self) -> dict[str, str]:
        """Clears what an earlier driver left of its temporary files, since one that is killed cannot.

        Returns the variables that send a driver, its JVM and its Python workers to that folder.
        """
        shutil.rmtree(self.scratch, ignore_errors=True)
        with _writing(self.scratch):
            self.scratch.mkdir(exist_ok=True)
        return {"SPARK_LOCAL_DIRS": str(self.scratch), "TMPDIR": str(self.scratch)}

    def last_start(self) -> RunSpec | None:
        try:
            return RunSpec.model_validate_json(self.run_spec.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def _read_lineage(self) -> Lineage | None:
        try:
            return Lineage.model_validate_json(self._lineage.read_bytes())
        except (FileNotFoundError, ValidationError):
            last = self.last_start()
        if last is not None:
            return self._write_lineage(Lineage(lineage=last.lineage, first_started_at=last.first_started_at))
        if _has_content(self.state):
            raise StateFault(f"{self._lineage} is lost or damaged, and so is {self.run_spec.name}", hint=FRESH_HINT)
        return None

    def _write_lineage(self, lineage: Lineage) -> Lineage:
        write_durably(self._lineage, lineage.model_dump_json())
        return lineage

    def _finish_discarding(self, lineage: Lineage) -> Lineage:
        old = self.root / f"discarded-{uuid.uuid4().hex}"
        old.mkdir()
        for path in (self.state, self._signatures, self.run_spec):
            if path.exists():
                path.rename(old / path.name)
        self.state.mkdir()
        done = self._write_lineage(lineage.model_copy(update={"discards_state": False}))
        for leftover in self.root.glob("discarded-*"):
            shutil.rmtree(leftover)
        return done

    def _highest_attempt(self, log: bytes) -> int:
        """Line k of the log was written for attempt k or a later one, so a damaged line still counts as one taken."""
        lines = log.splitlines()
        taken = max((len(lines), *(_attempt_of(line) for line in lines)))
        last = self.last_start()
        if taken == 0 and last is None and _has_content(self.state):
            raise StateFault(f"{self._attempts} is lost or damaged, and so is {self.run_spec.name}", hint=FRESH_HINT)
        return max(taken, last.attempt if last else 0)

    def _read_signatures(self) -> dict[str, Signature]:
        try:
            kept = json.loads(self._signatures.read_bytes())
            return {name: Signature.model_validate(shape) for name, shape in kept.items()}
        except (FileNotFoundError, ValueError, AttributeError):
            last = self.last_start()
        return _signatures_of(last.plan) if last else {}


def write_durably(path: Path, text: str) -> None:
    """Replaces `path` in one step that survives a power cut: readers see the old text or the new one, whole."""
    with _writing(path):
        write_atomically(path, text)


def _signatures_of(plan: ExecutionPlan) -> dict[str, Signature]:
    return {query.id: Signature(signature=query.state_signature, operators=query.operators) for query in plan.queries}


def _attempt_line(attempt: int) -> bytes:
    return b"%d %08x\n" % (attempt, zlib.crc32(b"%d" % attempt))


def _attempt_of(line: bytes) -> int:
    number = line.partition(b" ")[0]
    return int(number) if number.isdigit() and _attempt_line(int(number)) == line + b"\n" else 0


def _has_content(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _open(path: Path) -> BinaryIO:
    """For reading and appending, made if missing."""
    with _writing(path):
        return open(path, "a+b")


def _holder(lock: BinaryIO) -> str:
    lock.seek(0)
    return lock.read(20).decode("ascii", "replace").strip() or "unknown"


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Says in Tidemark's words that the home cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFull(f"no space left to write {path}", hint="free some space, then run again") from None
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="set TIDEMARK_HOME to a folder that can be written"
        ) from None
