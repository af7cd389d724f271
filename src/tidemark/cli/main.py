"""The `tidemark` command: its words and options, and the one place where errors become exit codes.

Every command imports what it needs when it is called, so that help and validation answer at once.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli import control
from tidemark.cli.failures import FAILED, complain, error_text, keep_trace
from tidemark.errors import NotAvailable, TidemarkError

# Modules make many objects that stay: looking through them for rubbish again and again was a tenth of a short command.
gc.set_threshold(50_000, 20, 20)
app = typer.Typer(
    name="tidemark",
    help="Event-time stream processing on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
dev = typer.Typer(help="Systems to try jobs with, on this machine.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(dev, name="dev")
errors = typer.Typer(help="Events that were refused.", no_args_is_help=True, rich_markup_mode=None)

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="The job definition, YAML or JSON.")]
JobFiles = Annotated[list[Path], typer.Argument(metavar="JOB", help="Job definitions, YAML or JSON.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON on standard output.")]


def main() -> None:
    """Runs the command line; ends the process with 0 (fine), 1 (the job or test failed) or 2 (usage, definition)."""
    try:
        _run_and_flush()
    except TidemarkError as error:
        sys.exit(complain(error))
    except BrokenPipeError:
        _let_go_of_standard_output()
        sys.exit(FAILED)
    except Exception as error:
        print(error_text("internal", str(error) or type(error).__name__, _report(error)), file=sys.stderr)
        sys.exit(FAILED)


def _run_and_flush() -> None:
    try:
        app()
    finally:
        sys.stdout.flush()


def _report(error: Exception) -> str:
    return f"this should not happen; the details are in {keep_trace(error)}"


def _let_go_of_standard_output() -> None:
    """The reader has gone: what is still buffered must not raise again when Python flushes it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tidemark {version('tidemark')}")
        raise typer.Exit


@app.callback()
def tidemark(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Event-time stream processing on Apache Spark."""


@app.command()
def run(
    job: JobFile,
    until_drained: Annotated[
        bool, typer.Option("--until-drained", help="Read what is there now, close every window, then exit.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the kept state and start over.")] = False,
    json: Json = False,
) -> None:
    """Run a job on this machine.

    It goes on from its last committed epoch. Relative paths in the job mean the current folder. Ctrl-C stops it at
    the end of the epoch, a second Ctrl-C at once.
    """
    from tidemark.cli.run import run as run_command

    raise typer.Exit(run_command(job, until_drained=until_drained, fresh=fresh, as_json=json))


@app.command()
def validate(jobs: JobFiles, json: Json = False) -> None:
    """Check job definitions and show every problem with its place."""
    from tidemark.cli.check import validate as validate_command

    raise typer.Exit(validate_command(jobs, as_json=json))


@app.command()
def explain(job: JobFile, json: Json = False) -> None:
    """Show how a job would be carried out."""
    from tidemark.cli.check import explain as explain_command

    raise typer.Exit(explain_command(job, as_json=json))


@app.command(name="test")
def run_tests(jobs: JobFiles, json: Json = False) -> None:
    """Run the tests written in job definitions."""
    from tidemark.cli.job_tests import run_job_tests

    raise typer.Exit(run_job_tests(jobs, as_json=json))


@app.command()
def doctor(json: Json = False) -> None:
    """Check that this machine has what a run needs."""
    from tidemark.cli.doctor import doctor as doctor_command

    raise typer.Exit(doctor_command(as_json=json))


@app.command()
def demo() -> None:
    """Run the orders of an online shop through a job."""
    from tidemark.cli.demo.demo import demo as demo_command

    raise typer.Exit(demo_command())


@dev.command()
def kafka(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 picks one.")] = 9092,
    data: Annotated[Path | None, typer.Option(help="Where it keeps its data (.tidemark/dev/kafka).")] = None,
) -> None:
    """Run a Kafka broker in the foreground and print its address."""
    from tidemark.cli.dev_kafka import dev_kafka

    raise typer.Exit(dev_kafka(port, data))


@dev.command()
def postgres(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 picks one.")] = 5432,
    data: Annotated[Path | None, typer.Option(help="Where it keeps its data (.tidemark/dev/postgres).")] = None,
) -> None:
    """Run a PostgreSQL in the foreground and print its address."""
    from tidemark.cli.dev_postgres import dev_postgres

    raise typer.Exit(dev_postgres(port, data))


app.command()(control.server)


@errors.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def replay() -> None:
    """Read events that were refused once more."""
    hint = "Mend the rows that a sink of the port `errors` holds, and give them to the source as new events."
    raise NotAvailable("`tidemark errors replay` is not available yet", hint=hint)


app.add_typer(errors, name="errors", hidden=True)
app.add_typer(control.jobs, name="jobs")
app.add_typer(control.savepoints, name="savepoints")
app.add_typer(control.state, name="state")
app.add_typer(control.tokens, name="tokens")
app.add_typer(control.secrets, name="secrets")
