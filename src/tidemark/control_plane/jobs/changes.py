"""Changes that need the driver stopped: rescale and upgrade. Kept in the store until the job has come to rest.

The state of before the change is not touched by it: when the first start with it fails, the job goes back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control_plane.jobs.lifecycle import State
from tidemark.control_plane.store import jobs as store
from tidemark.control_plane.store.records import JobRecord
from tidemark.errors import Conflict
from tidemark.protocol.messages import Failure
from tidemark.protocol.start import Rebuild, Rescale


def rescaling(job: JobRecord, parallelism: int) -> dict[str, Any]:
    plan = {**job.plan, "parallelism": parallelism}
    spec = Rescale(parallelism=parallelism).model_dump(mode="json")
    return {"what": f"rescale to {parallelism}", "definition": job.definition, "plan": plan, "spec": spec}


def upgrading(job: JobRecord, definition: str, plan: dict[str, Any], rebuilt: tuple[str, ...]) -> dict[str, Any]:
    """To another definition; its parallelism, if it names one, is taken up too, unless state has to be rebuilt."""
    wanted = plan["parallelism"] or job.plan["parallelism"]
    spec = _preparation(job, wanted, rebuilt)
    return {"what": "upgrade", "definition": definition, "plan": {**plan, "parallelism": wanted}, "spec": spec}


def _preparation(job: JobRecord, wanted: int | None, rebuilt: tuple[str, ...]) -> dict[str, Any] | None:
    rescaled = wanted is not None and wanted != job.plan["parallelism"]
    if rescaled and rebuilt:
        raise Conflict(
            f"the state of {', '.join(rebuilt)} has to be rebuilt, which cannot be done with another parallelism",
            hint=f"keep parallelism {job.plan['parallelism']}, and rescale afterwards",
        )
    if rebuilt:
        return Rebuild(queries=rebuilt).model_dump(mode="json")
    return Rescale(parallelism=wanted).model_dump(mode="json") if rescaled and wanted is not None else None


def take_up_change(connection: sa.Connection, job: JobRecord, now: datetime) -> None:
    """Lets a stopped job start with the change; what was before is kept until it runs."""
    assert job.change is not None
    prepare = {
        "what": job.change["what"],
        "spec": job.change["spec"],
        "fallback": {"definition": job.definition, "plan": job.plan},
    }
    cause = job.change["what"]
    job = store.update_job(
        connection,
        job.job_id,
        definition=job.change["definition"],
        plan=job.change["plan"],
        change=None,
        prepare=prepare,
    )
    store.transition(connection, job, State.STARTING, cause, now)


def fall_back(connection: sa.Connection, job: JobRecord, failure: Failure, now: datetime) -> bool:
    """Whether the job was to start with a change, which cannot be, and now starts again as it was before."""
    fallback = (job.prepare or {}).get("fallback")
    if job.prepare is None or fallback is None:
        return False
    before = fallback["plan"]["parallelism"]
    rescaled = (job.prepare["spec"] or {}).get("kind") == "rescale" and before is not None
    back = {"what": "fall back", "spec": Rescale(parallelism=before).model_dump(mode="json")} if rescaled else None
    store.update_job(connection, job.job_id, prepare=back, failures=[], restart_at=None, **fallback)
    store.add_event(connection, job, "fallback", f"{job.prepare['what']} failed: {failure.message}", now)
    return True


def unchanged(job: JobRecord) -> dict[str, Any]:
    """A stop and a start, and nothing else."""
    return {"what": "restart", "definition": job.definition, "plan": job.plan, "spec": None}


def change_at_rest(connection: sa.Connection, job: JobRecord, change: dict[str, Any]) -> JobRecord:
    """The change of a job without a driver: its next start takes it up."""
    spec = change["spec"] if job.attempt else None
    waiting = (job.prepare or {}).get("spec")
    if spec and waiting and spec["kind"] != waiting["kind"]:
        raise Conflict(
            f"job {job.name!r} has still to {waiting['kind']}", hint="restart it first, then change it again"
        )
    prepare = {"what": change["what"], "spec": spec, "fallback": None} if spec else job.prepare
    return store.update_job(
        connection, job.job_id, definition=change["definition"], plan=change["plan"], prepare=prepare
    )


def keep_parallelism(connection: sa.Connection, job: JobRecord) -> None:
    """The driver could not spread the state and goes on with the parallelism it had."""
    fallback = (job.prepare or {}).get("fallback")
    if fallback is not None:
        plan = {**job.plan, "parallelism": fallback["plan"]["parallelism"]}
        store.update_job(connection, job.job_id, plan=plan, prepare=None)
