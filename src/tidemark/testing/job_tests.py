"""`run_tests`: the `tests:` of a job file, in a process of their own that is started again after each wanted crash.

No Spark here. What the process and the JVM write to standard error is kept only when the process fails by itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from tidemark.cli.job_file import read_job_file
from tidemark.compiler.compile import compile_job
from tidemark.errors import EngineFault, UsageError
from tidemark.testing.case_messages import MARK, CaseResult, Crashing, Position, ProcessSpec

_MESSAGES: TypeAdapter[CaseResult | Crashing] = TypeAdapter(
    Annotated[CaseResult | Crashing, Field(discriminator="kind")]
)


def run_tests(path: Path, on_result: Callable[[CaseResult], None]) -> list[CaseResult]:
    """Runs every test of a job file and hands on each result as it comes. Touches nothing outside a temporary folder.

    Raises DefinitionError for a job that cannot be compiled, UsageError for one without tests.
    """
    text = read_job_file(path)
    if not compile_job(text).definition.tests:
        raise UsageError(f"{path} has no tests", hint="write some under `tests:`, each with `input` and `expect`")
    folder = Path(tempfile.mkdtemp(prefix="tidemark-test-"))
    results: list[CaseResult] = []
    for result in _results(text, folder):
        results.append(result)
        on_result(result)
    shutil.rmtree(folder, ignore_errors=True)
    return results


def _results(text: str, folder: Path) -> Iterator[CaseResult]:
    start: Position | None = Position()
    while start is not None:
        spec, start = ProcessSpec(job=text, folder=str(folder), start=start), None
        with _started(spec, folder) as process:
            for message in _messages(process):
                if isinstance(message, Crashing):
                    start = message.at
                else:
                    yield message
            process.wait()
        wanted = 0 if start is None else -signal.SIGKILL
        if process.returncode != wanted:
            raise EngineFault(
                f"the process that runs the tests ended by itself ({process.returncode})",
                hint=f"its output is in {folder / 'log'}",
            )


@contextlib.contextmanager
def _started(spec: ProcessSpec, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The process and all that it starts are one group; nothing of it is left at the end."""
    path = folder / "spec.json"
    path.write_text(spec.model_dump_json(), encoding="utf-8")
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidemark.testing.case_process", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    assert process.stdin
    assert process.stdout
    with process.stdin, process.stdout:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _messages(process: subprocess.Popen[str]) -> Iterator[CaseResult | Crashing]:
    """Ends when the pipe does: the JVM holds it too, so then it is gone and writes to no file any more."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(MARK):
            yield _MESSAGES.validate_json(line.removeprefix(MARK))
