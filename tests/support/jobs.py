"""Small job texts for compiler tests, and what compiling them says."""

from __future__ import annotations

from textwrap import dedent

from tidemark.compiler.compile import Compiled, compile_job
from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.errors import DefinitionError

ORDERS = """\
tidemark: 1
name: orders
sources:
  orders:
    files: {path: in, format: jsonl}
    schema: {id: string, store: string, amount: double, tags: array<string>, n: int, ts: timestamp}
    event_time: ts
"""


def job(rest: str, *, head: str = ORDERS) -> str:
    """A job of one source `orders` and what `rest` adds, dedented."""
    return head + dedent(rest)


def diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """Everything said about a definition, errors or warnings."""
    try:
        return compile_job(text).warnings
    except DefinitionError as error:
        return error.diagnostics


def codes(text: str) -> list[str]:
    return [found.code for found in diagnostics(text)]


def places(text: str) -> list[tuple[str, str, int | None, int | None]]:
    return [(found.code, found.path, found.line, found.column) for found in diagnostics(text)]


def compiled(rest: str, *, head: str = ORDERS) -> Compiled:
    return compile_job(job(rest, head=head))
