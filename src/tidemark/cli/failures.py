"""How a failure reaches the user: a code, what happened, what to do, and an exit code. Never a stack trace."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import DefinitionError, TidemarkError, UsageError

if TYPE_CHECKING:
    from tidemark.compiler.diagnostics.diagnostic import Diagnostic

FINE, FAILED, UNUSABLE = 0, 1, 2


def exit_code_of(error: TidemarkError) -> int:
    return UNUSABLE if isinstance(error, DefinitionError | UsageError) else FAILED


def error_text(code: str, message: str, hint: str | None) -> str:
    return f"error[{code}]: {message}" + (f"\n  hint: {hint}" if hint else "")


def diagnostic_text(file: str, diagnostic: Diagnostic) -> str:
    """One line that editors and terminals can follow to its place, and the hint below it."""
    place = ":".join(str(part) for part in (file, diagnostic.line, diagnostic.column) if part is not None)
    text = f"{place}: {diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"
    return f"{text}\n  hint: {diagnostic.hint}" if diagnostic.hint else text


def complain(error: TidemarkError, file: str = "") -> int:
    """Prints the error on standard error; the exit code that goes with it."""
    if isinstance(error, DefinitionError):
        for diagnostic in error.diagnostics:
            print(diagnostic_text(file, diagnostic), file=sys.stderr)
    else:
        print(error_text(error.code, error.message, error.hint), file=sys.stderr)
    return exit_code_of(error)


def keep_trace(error: BaseException) -> Path:
    """Writes the trace of an error that should not exist to a file of its own, for a report."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="tidemark-error-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        traceback.print_exception(error, file=file)
    return Path(file.name)
