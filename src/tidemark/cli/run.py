"""`run`: one job on this machine, shown while it goes, with an exit code at its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tidemark.cli.failures import FINE, complain, diagnostic_text, error_text, exit_code_of
from tidemark.cli.job_file import read_job_file
from tidemark.cli.local import Request, error_of, supervise
from tidemark.cli.progress import Progress
from tidemark.cli.render import PlainRenderer, Renderer
from tidemark.compiler.compile import compile_job
from tidemark.errors import TidemarkError
from tidemark.protocol.messages import Failure
from tidemark.settings import Settings, load_settings


def run(path: Path, *, until_drained: bool, fresh: bool, as_json: bool) -> int:
    """Relative paths in the job, and the folder where its state is kept, are taken from the current folder."""
    try:
        progress = _run(path, until_drained, fresh, as_json)
        exit_code = complain_of(progress.failure) if progress.failure else FINE
    except TidemarkError as error:
        progress = Progress(path.stem, state="FAILED", failure=Failure.of(error))
        exit_code = complain(error, str(path))
    if as_json:
        print(json.dumps(progress.summary()), flush=True)
    return exit_code


def complain_of(failure: Failure) -> int:
    """Prints what a driver reported on standard error; the exit code that goes with it."""
    print(error_text(failure.code, failure.message, failure.hint), file=sys.stderr)
    return exit_code_of(error_of(failure))


def _run(path: Path, until_drained: bool, fresh: bool, as_json: bool) -> Progress:
    definition = read_job_file(path)
    compiled = compile_job(definition)
    for warning in compiled.warnings:
        print(diagnostic_text(str(path), warning), file=sys.stderr)
    settings = load_settings(Path.cwd())
    request = Request(definition, compiled.plan, Path.cwd(), settings, until_drained, fresh)
    return supervise(request, renderer_for(settings, as_json=as_json))


def renderer_for(settings: Settings, *, as_json: bool) -> Renderer:
    """A live table where standard error is a terminal that can draw one, else lines."""
    if sys.stderr.isatty():
        from rich.console import Console

        from tidemark.cli.live import LiveRenderer

        screen = Console(stderr=True)
        if screen.is_terminal and not screen.is_dumb_terminal:
            return LiveRenderer(screen, console_on_screen=as_json or sys.stdout.isatty())
    return PlainRenderer(sys.stderr, sys.stderr if as_json else sys.stdout, settings.log_level)
