"""Checkpoints as Spark would leave them, written by hand: epochs with state, listings and records, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

PARTITIONS = 2
RETAINED = 50


def unique(epoch: int, partition: int) -> str:
    return f"{epoch:08x}-{partition:04x}"


def commit_epoch(folder: Path, epoch: int) -> None:
    """In Spark's order: log, listing, state, our record, commit. State of every third version is a whole one."""
    conf = {"spark.sql.shuffle.partitions": str(PARTITIONS)}
    metadata = json.dumps({"batchWatermarkMs": epoch, "conf": conf})
    _write(folder / "offsets" / str(epoch), f'v2\n{metadata}\norders:{{"logOffset":{epoch}}}')
    _write(folder / "sources" / "orders" / str(epoch), 'v1\n{"path":"file"}')
    for partition in range(PARTITIONS):
        store = folder / "state" / "0" / str(partition)
        name = f"{epoch + 1}_{unique(epoch, partition)}"
        _write(store / f"{name}.changelog", f"changes {epoch}")
        if epoch % 3 == 0:
            _write(store / "SSTs" / f"{epoch:06}-{unique(epoch, partition)}.sst", f"rows {epoch}")
            _write(store / f"{name}.zip", f"state {epoch}")
    _write(folder / "state" / "0" / "_metadata" / "metadata", "operator", replace=False)
    _write(folder / "tidemark" / f"offsets-{epoch}", (folder / "offsets" / str(epoch)).read_text())
    record = {"epoch": epoch, "watermark": {"value": epoch * 1_000_000}, "sinks": {"out": epoch}, "total": {}}
    _write(folder / "tidemark" / str(epoch), json.dumps(record))
    ids = {"0": [[unique(epoch, partition)] for partition in range(PARTITIONS)]}
    _write(folder / "commits" / str(epoch), f"v2\n{json.dumps({'stateUniqueIds': ids})}")


def forget_old(folder: Path, epoch: int) -> None:
    """What Spark cleans up when it has got that far: state that no kept epoch needs."""
    for path in folder.glob("state/0/*/*_*"):
        if int(path.name.partition("_")[0]) < epoch - RETAINED:
            path.unlink(missing_ok=True)
    for log in ("offsets", "commits"):
        (folder / log / str(epoch - RETAINED)).unlink(missing_ok=True)


def _write(path: Path, text: str, replace: bool = True) -> None:
    if path.exists() and not replace:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.tmp")
    staged.write_text(text)
    staged.rename(path)
