"""The `tests:` of a job against its graph: their sources, sinks and columns must exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidemark.compiler.definition.case import RECORD_FIELDS, CaseDefinition
from tidemark.compiler.definition.parse import Draft
from tidemark.compiler.diagnostics.diagnostic import Path, Problem
from tidemark.compiler.diagnostics.suggest import hint_for
from tidemark.compiler.graph.graph import LogicalGraph

_UNKNOWN = {"source": "unknown_source", "sink": "unknown_sink"}


def tests_fit_the_job(draft: Draft, graph: LogicalGraph) -> Iterator[Problem]:
    sources = {id_: list(node.columns) for id_, node in graph.sources.items()}
    sinks = {id_: list(node.stream.columns) for id_, node in graph.sinks.items()}
    for index, case in draft.tests.items():
        found = [
            *_unknown("source", case.input, [*draft.sources], draft.broken, "input"),
            *_unknown("sink", case.expect, [*draft.sinks], draft.broken, "expect"),
            *_events(case, sources),
            *_rows(case, sinks),
        ]
        yield from (problem.below("tests", index) for problem in found)


def _unknown(kind: str, named: Iterable[str], known: list[str], broken: set[str], field: str) -> Iterator[Problem]:
    for id_ in named:
        if id_ not in known and id_ not in broken:
            hint = hint_for(id_, known, what=f"{kind}s")
            yield Problem(_UNKNOWN[kind], f"there is no {kind} `{id_}`", hint, (field, id_), at_key=True)


def _events(case: CaseDefinition, sources: Mapping[str, list[str]]) -> Iterator[Problem]:
    for id_ in case.input:
        for index, row in case.events(id_) if id_ in sources else ():
            yield from _columns(row, [*sources[id_], *RECORD_FIELDS], ("input", id_, index))


def _rows(case: CaseDefinition, sinks: Mapping[str, list[str]]) -> Iterator[Problem]:
    for id_, rows in case.expect.items():
        for index, row in enumerate(rows) if id_ in sinks else ():
            yield from _columns(row, sinks[id_], ("expect", id_, index))


def _columns(row: Mapping[str, object], known: list[str], path: Path) -> Iterator[Problem]:
    for name in row:
        if name not in known:
            hint = hint_for(name, known, what="columns")
            yield Problem("unknown_column", f"there is no column `{name}` here", hint, (*path, name), at_key=True)
