"""A row of crashes: what is kept of each, and what shows that the job has got on between two of them. Pure.

A driver can commit an epoch and die before it has told anybody: its successor finds that epoch on the disk, and shows
it in its status.
"""

from __future__ import annotations

from typing import Any

from tidemark.control_plane.store.records import JobRecord
from tidemark.protocol.messages import Failure
from tidemark.protocol.status import DriverStatus

Crash = dict[str, Any]


def crash_of(job: JobRecord, failure: Failure, at: str, seen: DriverStatus | None) -> Crash:
    """The next of the row: the failure, and in `epochs` how far each query is known to have come by then."""
    return {
        "code": failure.code,
        "domain": failure.domain,
        "message": failure.message,
        "hint": failure.hint,
        "operator": failure.step,
        "at": at,
        "epochs": _known(job) | _committed(seen),
    }


def has_got_on(row: list[Crash], status: DriverStatus | None) -> bool:
    """Whether a query is further than anybody knew at the last crash; not without a crash."""
    if not row:
        return False
    known = row[-1].get("epochs", {})
    return any(epoch > known.get(id_, -1) for id_, epoch in _committed(status).items())


def _known(job: JobRecord) -> dict[str, int]:
    """A status may be one from before all queries were there: what an earlier crash knew still counts."""
    kept = None if job.status is None else DriverStatus.model_validate(job.status)
    earlier: dict[str, int] = job.failures[-1].get("epochs", {}) if job.failures else {}
    return _committed(kept) | earlier


def _committed(status: DriverStatus | None) -> dict[str, int]:
    queries = () if status is None else status.queries
    return {query.id: query.epoch for query in queries if query.epoch is not None}
