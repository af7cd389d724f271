"""Which paths a job that comes over REST may name: those below the allowed roots, after links are followed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.connectors.paths import local_path
from tidemark.stored_secrets import REFERENCE

PATH_OPTION = re.compile(r"(^|[_.])(path|location|file|folder|directory)$|^security\.(ca|cert|key)$")
_GLOB = re.compile(r"[*?\[{]")
CODE = "path_not_allowed"


def refused_paths(
    plan: ExecutionPlan, base: Path, roots: Sequence[Path], environment: Mapping[str, str]
) -> list[Diagnostic]:
    """A diagnostic for every path of a source or sink that is outside of all roots. Shows no value of a variable."""
    allowed = [root.resolve() for root in roots]
    found = [
        *((f"sources.{id_}.{each.connector}", each.options) for id_, each in plan.sources.items()),
        *((f"sinks.{id_}.{each.connector}", each.options) for id_, each in plan.sinks.items()),
    ]
    return [
        _refusal(f"{where}.{name}", text)
        for where, options in found
        for name, text in _paths(options)
        if not _is_inside(_expanded(text, environment), base, allowed)
    ]


def _paths(options: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _paths(value, f"{above}{name}.")
        elif isinstance(value, str) and PATH_OPTION.search(f"{above}{name}"):
            yield f"{above}{name}", value


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    return REFERENCE.sub(lambda match: environment.get(match[1], match[0]), text)


def _is_inside(text: str, base: Path, roots: Sequence[Path]) -> bool:
    path = local_path(text, base)
    if ".." in path.parts:
        return False
    fixed = _GLOB.split(str(path), maxsplit=1)[0]
    whole = Path(fixed) if fixed == str(path) else Path(fixed).parent if not fixed.endswith("/") else Path(fixed)
    resolved = whole.resolve()
    return any(resolved == root or root in resolved.parents for root in roots)


def _refusal(where: str, text: str) -> Diagnostic:
    return Diagnostic(
        CODE,
        f"the path {text!r} is outside of the folders that jobs of this server may use",
        "Use a path below one of them, or let the server's `allowed_roots` name its folder.",
        where,
        None,
        None,
    )
