"""`test`: runs the `tests:` of job files and shows each result as it comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tidemark.cli.failures import FAILED, FINE, complain
from tidemark.errors import TidemarkError
from tidemark.testing.case_messages import CaseResult
from tidemark.testing.job_tests import run_tests


def run_job_tests(paths: Sequence[Path], *, as_json: bool) -> int:
    """Goes on after a file that fails or cannot be used; the worst outcome gives the exit code."""
    out = sys.stderr if as_json else sys.stdout
    results: list[dict[str, Any]] = []
    worst = FINE
    for path in paths:
        try:
            for result in run_tests(path, partial(_show, path, out)):
                results.append(_fields(path, result))
                worst = max(worst, FINE if result.passed else FAILED)
        except TidemarkError as error:
            worst = max(worst, complain(error, str(path)))
    if as_json:
        print(json.dumps(results, indent=2))
    passed = sum(result["passed"] for result in results)
    print(f"{passed} passed, {len(results) - passed} failed", file=out)
    return worst


def _show(path: Path, out: TextIO, result: CaseResult) -> None:
    verdict = "passed" if result.passed else "FAILED"
    print(f"{path}: {result.name}: {verdict} ({result.seconds:.1f} s)", file=out, flush=True)
    if not result.passed:
        print("".join(f"  {line}\n" for line in result.diff.splitlines()), end="", file=out, flush=True)


def _fields(path: Path, result: CaseResult) -> dict[str, Any]:
    return {
        "file": str(path),
        "name": result.name,
        "passed": result.passed,
        "diff": result.diff,
        "seconds": round(result.seconds, 3),
    }
