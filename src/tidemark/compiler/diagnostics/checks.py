"""What is checked once the graph is built: CHECKS refuse, ADVICE warns.

Advice is given about a sound job only: with an error in it, half of it would look unused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidemark.compiler.definition.parse import Draft
from tidemark.compiler.diagnostics.diagnostic import Problem
from tidemark.compiler.graph.cases import tests_fit_the_job
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.graph.legality import (
    backfill_never_ends,
    branch_ports_unused,
    error_columns_collide,
    late_columns_collide,
    nothing_unused,
    side_ports_not_connected,
)

Check = Callable[[Draft, LogicalGraph], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (late_columns_collide, error_columns_collide, backfill_never_ends, tests_fit_the_job)
ADVICE: tuple[Check, ...] = (side_ports_not_connected, nothing_unused, branch_ports_unused)


def run_checks(draft: Draft, graph: LogicalGraph, *, sound: bool) -> list[Problem]:
    found = [problem for check in CHECKS for problem in check(draft, graph)]
    return found if found or not sound else [problem for check in ADVICE for problem in check(draft, graph)]
