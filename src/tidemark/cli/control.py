"""The words and options of the commands for a server: `server`, `tokens`, `secrets`, `jobs`, `savepoints`, `state`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="The job definition, YAML or JSON.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its name.")]
SavepointId = Annotated[str, typer.Argument(metavar="ID", help="The savepoint's id.")]
SecretName = Annotated[str, typer.Argument(metavar="NAME", help="As in `$NAME`: capital letters, digits and _.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON on standard output.")]
Wait = Annotated[bool, typer.Option("--wait", help="Return when it is done.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]

_STOPPED = ("STOPPED", "CANCELED", "FAILED", "FINISHED")
_STARTED = ("RUNNING", *_STOPPED)


def _group(help_: str) -> typer.Typer:
    return typer.Typer(help=help_, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


jobs = _group("Submit and look after the jobs of a server.")
savepoints = _group("Look at and delete savepoints.")
state = _group("Look into the keyed state of a job.")
tokens = _group("Make and revoke the tokens of the server of this home.")
secrets = _group("Keep what `$NAME` in jobs takes, in this home.")


def server(
    host: Annotated[str | None, typer.Option(help="The address to listen on [default: 127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 picks one [default: 8620].")] = None,
) -> None:
    """Run the control plane.

    The first line on standard output is its address. Jobs run on when it ends, and are found again by the next one.
    """
    from tidemark.cli.server import server as serve

    raise typer.Exit(serve(host, port))


@jobs.command("submit")
def submit(
    job: JobFile,
    no_start: Annotated[bool, typer.Option("--no-start", help="Only create it.")] = False,
    dry_run: DryRun = False,
    from_savepoint: Annotated[str | None, typer.Option(metavar="ID", help="Begin where this savepoint ends.")] = None,
    accept: Annotated[
        list[str] | None, typer.Option(help="`repeat_output`: rows may be written again after a restore.")
    ] = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Submit a job."""
    from tidemark.cli import jobs as commands

    code = commands.submit(
        job,
        start=not no_start,
        dry_run=dry_run,
        savepoint=from_savepoint,
        accept=accept or [],
        wait=wait,
        as_json=json,
    )
    raise typer.Exit(code)


@jobs.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="Only jobs in this state; may be given again.")] = None,
    json: Json = False,
) -> None:
    """List the jobs, the newest first."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.list_jobs(state or [], as_json=json))


@jobs.command("show")
def show(job: JobId, json: Json = False) -> None:
    """Show a job and its progress."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.show_job(job, as_json=json))


@jobs.command("stop")
def stop(job: JobId, wait: Wait = False, json: Json = False) -> None:
    """Stop a job at the end of its epoch; its state is kept."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.act(job, "stop", _STOPPED, wait=wait, as_json=json))


@jobs.command("restart")
def restart(job: JobId, wait: Wait = False, json: Json = False) -> None:
    """Start a job again from its last committed epoch."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.act(job, "restart", _STARTED, wait=wait, as_json=json))


@jobs.command("cancel")
def cancel(
    job: JobId,
    savepoint: Annotated[bool, typer.Option("--savepoint", help="Write a final savepoint first.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Forget a job that has ended, its state included.")] = False,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Cancel a job for good."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.cancel(job, savepoint=savepoint, purge=purge, wait=wait, as_json=json))


@jobs.command("savepoint")
def savepoint(job: JobId, wait: Wait = False, json: Json = False) -> None:
    """Write a savepoint while the job goes on."""
    from tidemark.cli import savepoints as commands

    raise typer.Exit(commands.take(job, wait=wait, as_json=json))


@jobs.command("rescale")
def rescale(
    job: JobId,
    parallelism: Annotated[int, typer.Argument(metavar="N", help="The new number of key groups.")],
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Spread the state of a job over another number of key groups."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.rescale(job, parallelism, wait=wait, as_json=json))


@jobs.command("upgrade")
def upgrade(
    job: JobFile,
    dry_run: DryRun = False,
    accept: Annotated[list[str] | None, typer.Option(help="A query or operator whose state may be lost.")] = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Give the job of this name a new definition and keep its state."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.upgrade(job, dry_run=dry_run, accept=accept or [], wait=wait, as_json=json))


@jobs.command("logs")
def logs(job: JobId, tail: Annotated[int, typer.Option(help="How many lines.")] = 200, json: Json = False) -> None:
    """Show the last lines of a job's log."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.logs(job, tail, as_json=json))


@jobs.command("watermark")
def watermark(job: JobId, json: Json = False) -> None:
    """Say why nothing comes out: what holds the watermark, what would release it, which windows wait."""
    from tidemark.cli import jobs as commands

    raise typer.Exit(commands.watermark(job, as_json=json))


@savepoints.command("list")
def list_savepoints(
    job: Annotated[str | None, typer.Option(metavar="ID", help="Only those of this job.")] = None, json: Json = False
) -> None:
    """List savepoints, the newest first."""
    from tidemark.cli import savepoints as commands

    raise typer.Exit(commands.list_savepoints(job, as_json=json))


@savepoints.command("show")
def show_savepoint(savepoint: SavepointId, json: Json = False) -> None:
    """Show a savepoint."""
    from tidemark.cli import savepoints as commands

    raise typer.Exit(commands.show_savepoint(savepoint, as_json=json))


@savepoints.command("delete")
def delete_savepoint(savepoint: SavepointId, json: Json = False) -> None:
    """Delete a savepoint and its files."""
    from tidemark.cli import savepoints as commands

    raise typer.Exit(commands.delete(savepoint, as_json=json))


@state.command("get")
def get_state(
    job: JobId,
    operator: Annotated[str, typer.Argument(help="The operator's id.")],
    key: Annotated[str, typer.Argument(help="JSON of the key columns, or the text of a single one.")],
    json: Json = False,
) -> None:
    """Look up what an operator keeps for a key, as of a committed epoch."""
    from tidemark.cli import savepoints as commands

    raise typer.Exit(commands.get_state(job, operator, key, as_json=json))


@tokens.command("create")
def create_token(
    role: Annotated[str, typer.Option(help="viewer, operator or admin.")],
    name: Annotated[str, typer.Option(help="Who it is for; stands in the audit log.")] = "token",
    days: Annotated[int | None, typer.Option(min=1, help="How long it is good for [default: for ever].")] = None,
    json: Json = False,
) -> None:
    """Make a token and print it, once. From then on the server wants one."""
    from tidemark.cli import server as commands

    raise typer.Exit(commands.create(name, role, days, as_json=json))


@tokens.command("list")
def list_tokens(json: Json = False) -> None:
    """List the tokens, without their values."""
    from tidemark.cli import server as commands

    raise typer.Exit(commands.list_all(as_json=json))


@tokens.command("revoke")
def revoke_token(token: Annotated[str, typer.Argument(metavar="ID", help="The token's id.")]) -> None:
    """Revoke a token."""
    from tidemark.cli import server as commands

    raise typer.Exit(commands.revoke(token))


@secrets.command("set")
def set_secret(name: SecretName) -> None:
    """Keep a secret, or replace it.

    Its value is asked for on a terminal, and else read from standard input. Jobs take it when they start next.
    """
    from tidemark.cli import secrets as commands

    raise typer.Exit(commands.set_secret(name))


@secrets.command("list")
def list_secrets(json: Json = False) -> None:
    """List the names of the secrets and when each was set."""
    from tidemark.cli import secrets as commands

    raise typer.Exit(commands.list_secrets(as_json=json))


@secrets.command("delete")
def delete_secret(name: SecretName) -> None:
    """Delete a secret. Jobs that run keep it until they end."""
    from tidemark.cli import secrets as commands

    raise typer.Exit(commands.delete_secret(name))
