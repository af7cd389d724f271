"""Runs a job on this machine, without a server: compile, take the job's folder, supervise a driver, sum up."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tidemark.cli.driver_process import DRIVER, DriverProcess
from tidemark.cli.progress import Progress
from tidemark.cli.render import PlainRenderer, Renderer
from tidemark.cli.supervisor import Patience, StopRequest, Supervisor
from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.driver_log import DriverLog
from tidemark.errors import DefinitionError, EngineFault, EnvironmentFault, TidemarkError, UsageError
from tidemark.processes import kill_marked
from tidemark.protocol.messages import AnyMessage, Failure, RunSpec
from tidemark.redaction import Redactor, secrets_of
from tidemark.run_directory import JobDirectory, Lineage
from tidemark.settings import Settings, load_settings
from tidemark.stored_secrets import StoredSecrets, variables


@dataclass(frozen=True)
class Request:
    """One `run` as the user asked for it. `driver` is the command that starts a driver."""

    definition: str
    plan: ExecutionPlan
    base: Path
    settings: Settings
    until_drained: bool = False
    fresh: bool = False
    driver: Sequence[str] = DRIVER
    patience: Patience = field(default_factory=Patience)

    @property
    def stored_secrets(self) -> StoredSecrets:
        return StoredSecrets.of(self.settings.home)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names that the job takes by `$NAME`."""
        return secrets_of(self.plan.model_dump(mode="json"))

    def redactor(self) -> Redactor:
        """Raises SecretsExposed when others may read what is stored."""
        known = variables(os.environ, self.stored_secrets.values())
        return Redactor.of({known[name]: name for name in self.secrets if name in known})


def run_job(definition_text: str, *, base: Path, until_drained: bool, fresh: bool) -> dict[str, Any]:
    """Runs a definition to its end and returns the summary of `run --json`; raises TidemarkError when it fails.

    Progress goes to standard error, lines of console sinks to standard output. In the main thread, Ctrl-C stops
    the job at the end of its epoch and the summary's state is STOPPED.
    """
    request = Request(
        definition_text, compile_job(definition_text).plan, base, load_settings(Path.cwd()), until_drained, fresh
    )
    renderer = PlainRenderer(sys.stderr, sys.stdout, request.settings.log_level)
    progress = supervise(request, renderer)
    if progress.failure is not None:
        raise error_of(progress.failure)
    return progress.summary()


def supervise(request: Request, renderer: Renderer) -> Progress:
    """Runs the job until it ends, is stopped or fails for good; the failure is in the answer.

    Raises TidemarkError only for what keeps a driver from being started.
    """
    _check_that_it_ends(request)
    directory = JobDirectory(request.settings.home, request.plan.job)
    progress = Progress(request.plan.job, request.plan)
    stop = StopRequest()
    with ExitStack() as stack:
        stack.enter_context(directory.locked())
        stack.enter_context(stop.on_signals())
        launch = _prepare(request, directory)
        stack.enter_context(renderer)
        end = Supervisor(
            launch,
            _Follower(progress, renderer),
            stop,
            f"its log is {directory.log}",
            request.patience,
            request.redactor,
        ).run()
        progress.state, progress.failure = end.state, end.failure
        renderer.ended(progress)
    return progress


def error_of(failure: Failure) -> TidemarkError:
    """The error that a driver reported, as one of this process."""
    known = {kind.code: kind for kind in _kinds(TidemarkError) if not issubclass(kind, DefinitionError)}
    return known.get(failure.code, EngineFault)(failure.message, hint=failure.hint, step=failure.step)


def _kinds(kind: type[TidemarkError]) -> list[type[TidemarkError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in _kinds(child))]


@dataclass
class _Follower:
    progress: Progress
    renderer: Renderer

    def hear(self, message: AnyMessage) -> None:
        self.progress.hear(message)
        self.renderer.heard(message, self.progress)

    def notice(self, text: str) -> None:
        self.renderer.notice(text)


@dataclass
class _Launcher:
    """Starts one attempt after the other of a job whose folder is held."""

    request: Request
    directory: JobDirectory
    lineage: Lineage

    def __call__(self) -> DriverProcess:
        spec = self._spec()
        self.directory.record_start(self.request.definition, spec)
        temporary = self.directory.empty_scratch()
        try:
            return DriverProcess(
                self.request.driver,
                self.directory.run_spec,
                log=DriverLog(self.directory.log, self.request.stored_secrets.file, self.request.secrets),
                mark=_mark(spec),
                environment={**temporary, "TIDEMARK_LOG_LEVEL": self.request.settings.log_level},
            )
        except OSError as error:
            raise EnvironmentFault(
                f"the driver cannot be started: {error}", hint="`tidemark doctor` says what is missing"
            ) from None

    def _spec(self) -> RunSpec:
        return RunSpec(
            plan=self.request.plan,
            lineage=self.lineage.lineage,
            attempt=self.directory.take_attempt(),
            first_started_at=self.lineage.first_started_at,
            state=str(self.directory.state),
            base=str(self.request.base.resolve()),
            master=self.request.settings.master,
            driver_memory=self.request.settings.driver_memory,
            until_drained=self.request.until_drained,
            secrets=str(self.request.stored_secrets.file),
        )


def _check_that_it_ends(request: Request) -> None:
    for source in request.plan.sources.values() if request.until_drained else ():
        if source.endless:
            raise UsageError(
                f"source {source.id}: this {source.connector} never ends, so the job cannot be drained",
                hint="give it a `count`, or run the job without --until-drained",
                step=source.id,
            )


def _prepare(request: Request, directory: JobDirectory) -> _Launcher:
    last = directory.last_start()
    if last is not None:
        kill_marked(_mark(last))
    now = datetime.now(UTC)
    lineage = directory.start_afresh(now) if request.fresh else directory.lineage(now)
    directory.check_state_fits(request.plan)
    return _Launcher(request, directory, lineage)


def _mark(spec: RunSpec) -> str:
    return f"{spec.lineage}/{spec.attempt}"
