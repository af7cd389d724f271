"""What a start does to the job's state before its queries run: restore a savepoint, spread the state
anew, or make it anew.

All may be asked for again after a crash: what is done already is not done twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.report.classify import classify
from tidemark.data_plane.state.rebuild import origin, rebuild
from tidemark.data_plane.state.rescale import checkpoints, needs_rescale, rescale
from tidemark.data_plane.state.restore import restore
from tidemark.errors import StateFault
from tidemark.generations import Generations
from tidemark.protocol.message import Message
from tidemark.protocol.messages import EpochCommitted, RunSpec, Started, Warned
from tidemark.protocol.start import Rebuild, Rescale, Restore

_LOG = logging.getLogger(__name__)
Send = Callable[[Message], None]


def prepare_state(spec: RunSpec, spark: SparkSession, send: Send) -> None:
    """Raises TidemarkError when a savepoint cannot be restored or a state not be rebuilt: nothing was changed then.

    A rescale that fails leaves the job as it was, and the job goes on.
    """
    generations = Generations(Path(spec.state))
    generations.clear_drafts()
    match spec.prepare:
        case Restore() as wanted if not _has_state(spec, generations):
            restore(spec.plan, wanted, generations, spark)
        case Rescale(parallelism=parallelism) if needs_rescale(spec.plan, generations, parallelism):
            _rescale(spec, parallelism, generations, spark, send)
        case Rebuild() as wanted if generations.pointer.origin != origin(spec.plan, wanted):
            rebuild(spec.plan, wanted, generations, JobDriver(spec, spark, send))
        case _ if _has_gone_on(spec, generations):
            generations.forget_others()


def undo_unused_switch(spec: RunSpec) -> None:
    """After a start that failed: a new state that no epoch has run on gives way to the one before it."""
    generations = Generations(Path(spec.state))
    if (
        isinstance(spec.prepare, Rescale | Rebuild)
        and generations.pointer.previous
        and not _has_gone_on(spec, generations)
    ):
        generations.fall_back()


def _has_state(spec: RunSpec, generations: Generations) -> bool:
    return any(each.last_logged() is not None for each in checkpoints(spec.plan, generations.current).values())


def _has_gone_on(spec: RunSpec, generations: Generations) -> bool:
    """Whether an epoch has begun since the last switch, so that the state before it can never be used again."""
    base = generations.pointer.base
    begun = {id_: each.last_begun() for id_, each in checkpoints(spec.plan, generations.current).items()}
    return any(epoch is not None and epoch > base.get(id_, -1) for id_, epoch in begun.items())


def _rescale(spec: RunSpec, parallelism: int, generations: Generations, spark: SparkSession, send: Send) -> None:
    _finish_begun_epochs(spec, generations, spark, send)
    try:
        rescale(spec.plan, parallelism, generations, spark)
    except (PySparkException, Py4JError, StateFault, OSError) as problem:
        _LOG.exception("the state could not be spread over %d key groups", parallelism)
        reason = classify(problem).message
        send(Warned(code="rescale_failed", message=f"the job goes on with the parallelism it had: {reason}"))


def _finish_begun_epochs(spec: RunSpec, generations: Generations, spark: SparkSession, send: Send) -> None:
    """Sinks may hold an epoch that was cut short; it has to be replayed as it was before anything is moved."""
    begun = {id_: each.begun() for id_, each in checkpoints(spec.plan, generations.current).items()}
    missing = {id_ for id_, epoch in begun.items() if epoch is not None}
    if not missing:
        return

    def hear(message: Message) -> None:
        if isinstance(message, EpochCommitted):
            missing.discard(message.query)
        if not isinstance(message, Started):
            send(message)
        if not missing:
            driver.ask_stop()

    plan = spec.plan.model_copy(update={"mode": "microbatch"})
    driver = JobDriver(spec.model_copy(update={"plan": plan, "until_drained": False}), spark, hear)
    driver.run()
