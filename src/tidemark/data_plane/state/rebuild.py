"""State of a new shape by replay: what open windows can hold is read again, under the watermark of the switch.

Windows that had closed by then take no events any more, so nothing that was delivered is delivered again, and none of
what is read again counts as late.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemark.compiler.plan.plan import ExecutionPlan, QueryPlan
from tidemark.compiler.plan.rebuild import rebuildable_window, too_far_back, why_not_rebuildable
from tidemark.data_plane.checkpoint import Checkpoint, Note
from tidemark.data_plane.job_driver import JobDriver, checkpoint_of
from tidemark.data_plane.query.counting import read_through
from tidemark.data_plane.query.frames import QueryFrames
from tidemark.data_plane.query_driver import StopRequested
from tidemark.data_plane.spark_internals import Execution
from tidemark.data_plane.state.rescale import last_epochs
from tidemark.data_plane.state.snapshot import snapshot
from tidemark.durable import write_atomically
from tidemark.epoch_records import EpochRecords
from tidemark.errors import NotFresh
from tidemark.generations import Generations
from tidemark.protocol.start import Rebuild

# In the new checkpoint: an epoch without input, and the one that reads again.
_BEGINNING, _REPLAY = 0, 1
_POLL_SECONDS = 1


@dataclass(frozen=True)
class Entry:
    """An entry of Spark's offset log that names its sources; the offset `-` is the beginning of a source."""

    metadata: str
    offsets: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Entry:
        version, metadata, *lines = path.read_text(encoding="utf-8").split("\n")
        if version != "v2":
            raise _refused("it reads a source by several ways")
        return cls(metadata, dict(_named(line) for line in lines))

    @property
    def watermark_ms(self) -> int:
        return int(json.loads(self.metadata)["batchWatermarkMs"])

    def at(self, offsets: dict[str, str]) -> str:
        return "\n".join(["v2", self.metadata, *[f"{name}:{offset}" for name, offset in offsets.items()]])

    def at_the_beginning(self) -> dict[str, str]:
        return dict.fromkeys(self.offsets, "-")


def origin(plan: ExecutionPlan, wanted: Rebuild) -> str:
    """What a generation is known by that was made for these queries in this shape."""
    shapes = {query.id: query.state_signature for query in plan.queries if query.id in wanted.queries}
    return "rebuild " + " ".join(f"{id_}={shape}" for id_, shape in sorted(shapes.items()))


def rebuild(plan: ExecutionPlan, wanted: Rebuild, generations: Generations, job: JobDriver) -> None:
    """`job` is the new plan's, not started. Raises NotFresh when a query cannot be rebuilt."""
    with generations.draft() as draft:
        for query in plan.queries:
            epoch = snapshot(generations.current / query.id, draft / query.id)
            if query.id in wanted.queries and epoch is not None:
                _check(plan, query, checkpoint_of(plan, query, generations.current))
                old = draft / f".{query.id}.old"
                (draft / query.id).rename(old)
                _Replay(plan, query, Checkpoint(old, query.sources), epoch, draft).run(job.frames(query))
                shutil.rmtree(old)
        generations.switch(draft, origin(plan, wanted), last_epochs(plan, draft))


def _check(plan: ExecutionPlan, query: QueryPlan, current: Checkpoint) -> None:
    if (reason := why_not_rebuildable(plan, query)) is not None:
        raise _refused(reason)
    if (begun := current.begun()) is not None:
        raise _refused(f"its epoch {begun} was cut short: start the job as it was and stop it first")


def _refused(reason: str) -> NotFresh:
    return NotFresh(
        f"the state cannot be rebuilt: {reason}", hint="keep the definition's windows and aggregates, or start afresh"
    )


class _Replay:
    """One query, from its old checkpoint at an epoch to a new one in `state`."""

    def __init__(self, plan: ExecutionPlan, query: QueryPlan, old: Checkpoint, epoch: int, state: Path) -> None:
        self._plan = plan
        self._query = query
        self._old = old
        self._epoch = epoch
        self._last = Entry.read(old.folder / "offsets" / str(epoch))
        self._record = old.record(epoch)
        self._new = checkpoint_of(plan, query, state)

    def run(self, frames: QueryFrames) -> None:
        if set(self._last.offsets) != set(self._query.sources):
            raise _refused(f"query {self._query.id} reads other sources than before")
        begin, first = self._where_to_begin()
        self._new.prepare()
        for note in filter(self._old.knows, Note):
            self._new.remember(note)
        if (self._old.folder / "sources").is_dir():
            shutil.copytree(self._old.folder / "sources", self._new.folder / "sources", copy_function=os.link)
        self._log(_BEGINNING, self._last.at_the_beginning())
        self._run_epoch(frames, _BEGINNING)
        # An epoch without input has left empty state behind; from here on it has read what is not read again.
        self._log(_BEGINNING, begin)
        self._log(_REPLAY, self._last.offsets)
        self._run_epoch(frames, _REPLAY)
        shift = self._old.shift() + self._epoch - _REPLAY
        self._new.write_record(_BEGINNING, {**first, "epoch": _BEGINNING})
        self._new.write_record(_REPLAY, {**self._record, "epoch": _REPLAY, "shift": shift})

    def _where_to_begin(self) -> tuple[dict[str, str], dict[str, Any]]:
        """The offsets after the last epoch whose events all belong to closed windows, and the record of that epoch."""
        window = rebuildable_window(self._plan, self._query)
        assert window is not None
        records = EpochRecords(self._old.folder)
        start = records.replay_start(self._epoch, self._last.watermark_ms, window.size_ms)
        if start is None:
            raise _refused(too_far_back(self._query))
        if start.after is None:
            return self._last.at_the_beginning(), start.record
        return Entry.read(self._old.folder / "tidemark" / f"offsets-{start.after}").offsets, start.record

    def _log(self, epoch: int, offsets: dict[str, str]) -> None:
        entry = self._new.folder / "offsets" / str(epoch)
        entry.parent.mkdir(exist_ok=True)
        entry.with_name(f".{epoch}.crc").unlink(missing_ok=True)
        write_atomically(entry, self._last.at(offsets))
        self._new.keep_logged(epoch)

    def _run_epoch(self, frames: QueryFrames, epoch: int) -> None:
        """Lets Spark run an epoch that is logged, and no other; nobody sees its results."""
        self._new.prepare()
        attached = threading.Event()

        def on_epoch(frame: DataFrame, number: int) -> None:
            attached.wait()
            if number != epoch:
                raise StopRequested
            read_through(frame)
            self._hand_over_watermark(Execution(query), epoch)

        writer = frames.terminal().writeStream.outputMode(frames.output_mode).foreachBatch(on_epoch)
        query = writer.option("checkpointLocation", str(self._new.folder)).start()
        attached.set()
        try:
            self._wait_for_commit(query, epoch)
        finally:
            query.stop()

    def _wait_for_commit(self, query: StreamingQuery, epoch: int) -> None:
        try:
            while not self._new.committed(epoch):
                query.awaitTermination(_POLL_SECONDS)
        except PySparkException:
            # Right behind the commit the next epoch is refused, which ends the query.
            if not self._new.committed(epoch):
                raise

    def _hand_over_watermark(self, execution: Execution, epoch: int) -> None:
        value = self._record["watermark"]["value"]
        if epoch == _REPLAY and value is not None and value > 0:
            execution.set_watermark(value // 1000)


def _named(line: str) -> tuple[str, str]:
    name, _, offset = line.partition(":")
    return name, offset
