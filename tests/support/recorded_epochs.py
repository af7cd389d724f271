"""The records that a driver leaves of its epochs, written by hand."""

from __future__ import annotations

import json
from pathlib import Path

from tidemark.epoch_records import EpochRecords

SECOND = 1_000_000


def recorded(folder: Path, epochs: range, counted: bool = True) -> EpochRecords:
    """Epoch N has seen events up to second N, ten in each epoch, and ran with a watermark of N seconds."""
    (folder / "tidemark").mkdir(parents=True)
    for epoch in epochs:
        times = {"orders": [[epoch * SECOND, 0, True], [None, 0, False]]}
        events = {"events": 10 * (epoch + 1)} if counted else {}
        record = {"epoch": epoch, "watermark": {"sources": times}, **events}
        (folder / "tidemark" / str(epoch)).write_text(json.dumps(record))
        entry = json.dumps({"batchWatermarkMs": epoch * 1000})
        (folder / "tidemark" / f"offsets-{epoch}").write_text(f"v2\n{entry}\norders:{{}}")
    return EpochRecords(folder)
