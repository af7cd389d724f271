"""Whose turn it is to write, by the attempt that a sink's ledger knows: the same rule for every ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.errors import Fenced, StateFault

if TYPE_CHECKING:
    from tidemark.connectors.connector import SinkContext


def is_older(context: SinkContext, attempt: int | None) -> bool:
    """Whether this attempt is older than the one that the ledger knows."""
    return attempt is not None and attempt > context.attempt


def check_new(context: SinkContext, last: int | None, epoch: int) -> None:
    """Raises StateFault when the ledger's last epoch is not before this one."""
    if last is not None and epoch <= last:
        raise StateFault(f"epoch {epoch} was offered to a sink that holds epoch {last}", step=context.sink)


def fenced(context: SinkContext, attempt: int | None) -> Fenced:
    return Fenced(
        f"attempt {attempt} of this job has taken over from attempt {context.attempt}",
        hint="Nothing is to be done: the newer driver writes the results.",
        step=context.sink,
    )
