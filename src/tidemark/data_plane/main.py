"""One driver from its run spec to its exit code: 0 ended, 1 failed and said so, 3 its supervisor is gone.

A driver of the control plane does not end with it; it ends with 4 when a newer attempt has taken over.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tidemark import jars
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.connectors.catalogue import BY_NAME
from tidemark.data_plane.control_link import ControlLink
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.report.classify import classify
from tidemark.data_plane.report.reporter import Reporter
from tidemark.data_plane.session import create_session
from tidemark.data_plane.state.prepare import prepare_state, undo_unused_switch
from tidemark.durable import lock_exclusively
from tidemark.errors import StateFault
from tidemark.processes import end_with_standard_input
from tidemark.protocol.message import Message
from tidemark.protocol.messages import Failed, Failure, RunSpec
from tidemark.protocol.start import Rescale, Restore

_LOG = logging.getLogger("tidemark.data_plane")
_REPORT_FD = "TIDEMARK_REPORT_FD"
_LOG_LEVEL = "TIDEMARK_LOG_LEVEL"
_SUPERVISOR_GONE = 3
_LOCK_SECONDS = 15.0


def main() -> int:
    level = os.environ.get(_LOG_LEVEL, "info").upper()
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for talkative in ("py4j", "httpx", "httpcore"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    spec = RunSpec.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    link = ControlLink(spec, spec.control) if spec.control else None
    send = link.send if link else _report_to_supervisor()
    try:
        with _only_writer(Path(spec.state)):
            return _run(spec, send, link)
    except Exception as problem:
        _LOG.exception("the driver failed")
        send(Failed(failure=Failure.of(classify(problem))))
        return 1
    finally:
        if link:
            link.close()


def _run(spec: RunSpec, send: Callable[[Message], None], link: ControlLink | None) -> int:
    asked = spec.prepare.parallelism if isinstance(spec.prepare, Restore | Rescale) else None
    parallelism = asked or spec.plan.parallelism or os.cpu_count() or 1
    spark = create_session(
        f"tidemark-{spec.plan.job}",
        master=spec.master,
        driver_memory=spec.driver_memory,
        parallelism=parallelism,
        jars=_jars(spec.plan),
        temporary=Path(tempfile.gettempdir()),
    )
    prepare_state(spec, spark, send)
    job = JobDriver(spec, spark, send)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: job.ask_stop())
    if link:
        link.attach(job)
    try:
        ended = job.run()
    except BaseException:
        undo_unused_switch(spec)
        raise
    if link:
        link.stopped()
    send(ended)
    spark.stop()
    return 0


def _report_to_supervisor() -> Callable[[Message], None]:
    """Messages go to whoever started this process, and without that one it does not go on."""
    end_with_standard_input(_SUPERVISOR_GONE)
    return Reporter(os.fdopen(int(os.environ.get(_REPORT_FD, "1")), "w", encoding="utf-8")).send


def _jars(plan: ExecutionPlan) -> list[Path]:
    """What the connectors of this plan need beside Spark's own; raises EnvironmentFault when it is not there."""
    used = {*(each.connector for each in plan.sources.values()), *(each.connector for each in plan.sinks.values())}
    sets = {set_ for name in used if (set_ := BY_NAME[name].jars)}
    return [jar for set_ in sorted(sets) for jar in jars.require(set_)]


def _only_writer(state: Path) -> IO[str]:
    """Locks the state folder for the life of the process; a driver that is just dying is waited for."""
    state.mkdir(parents=True, exist_ok=True)
    lock = (state / "lock").open("w", encoding="utf-8")
    if not lock_exclusively(lock, _LOCK_SECONDS):
        raise StateFault(f"another driver is writing to {state}", hint="stop it before starting this job again")
    return lock
