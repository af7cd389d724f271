"""`validate` and `explain`: what the compiler says about job files. Nothing is started, Spark is not loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidemark.cli.failures import FINE, UNUSABLE, complain, diagnostic_text, error_text
from tidemark.cli.job_file import read_job_file
from tidemark.compiler.compile import compile_job
from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.compiler.plan.explain import explain_json, explain_text
from tidemark.errors import DefinitionError, UsageError


def validate(paths: Sequence[Path], *, as_json: bool) -> int:
    """Checks every file, however many are wrong."""
    checked = [(path, _findings(path)) for path in paths]
    if as_json:
        print(json.dumps([_fields(path, finding) for path, findings in checked for finding in findings], indent=2))
    else:
        for path, findings in checked:
            _print_findings(path, findings)
    return UNUSABLE if any(_is_error(finding) for _, findings in checked for finding in findings) else FINE


def explain(path: Path, *, as_json: bool) -> int:
    try:
        plan = compile_job(read_job_file(path)).plan
    except DefinitionError as error:
        if as_json:
            print(json.dumps([_fields(path, finding) for finding in error.diagnostics], indent=2))
        return complain(error, str(path))
    print(json.dumps(explain_json(plan), indent=2) if as_json else explain_text(plan).rstrip("\n"))
    return FINE


def _findings(path: Path) -> Sequence[Diagnostic | UsageError]:
    try:
        return compile_job(read_job_file(path)).warnings
    except DefinitionError as error:
        return error.diagnostics
    except UsageError as error:
        return [error]


def _is_error(finding: Diagnostic | UsageError) -> bool:
    return isinstance(finding, UsageError) or finding.severity == "error"


def _print_findings(path: Path, findings: Sequence[Diagnostic | UsageError]) -> None:
    for finding in findings:
        if isinstance(finding, UsageError):
            print(error_text(finding.code, finding.message, finding.hint))
        else:
            print(diagnostic_text(str(path), finding))
    if not any(_is_error(finding) for finding in findings):
        print(f"{path}: ok")


def _fields(path: Path, finding: Diagnostic | UsageError) -> dict[str, Any]:
    place = (
        {"path": None, "line": None, "column": None, "severity": "error"}
        if isinstance(finding, UsageError)
        else {
            "path": finding.path,
            "line": finding.line,
            "column": finding.column,
            "severity": str(finding.severity),
        }
    )
    return {"file": str(path), "code": finding.code, "message": finding.message, "hint": finding.hint, **place}
