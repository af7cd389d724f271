"""`compile_job`: the one verb of the compiler. parse → check → build → plan."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.compiler.definition.job import JobDefinition
from tidemark.compiler.definition.parse import draft_of_definition, draft_of_text
from tidemark.compiler.diagnostics.checks import run_checks
from tidemark.compiler.diagnostics.diagnostic import Diagnostic, errors
from tidemark.compiler.graph.build import build
from tidemark.compiler.graph.graph import LogicalGraph
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.compiler.plan.planner import make_plan
from tidemark.errors import DefinitionError


@dataclass(frozen=True)
class Compiled:
    """A job that can run, with each stage it went through."""

    definition: JobDefinition
    graph: LogicalGraph
    plan: ExecutionPlan
    warnings: tuple[Diagnostic, ...]


def compile_job(job: str | JobDefinition) -> Compiled:
    """Compiles YAML or JSON text, or a definition. Raises DefinitionError with every error there is."""
    draft = draft_of_text(job) if isinstance(job, str) else draft_of_definition(job)
    graph, found = build(draft)
    problems = [*draft.problems, *found]
    problems += run_checks(draft, graph, sound=not errors(problems))
    diagnostics = draft.document.diagnose(problems)
    if errors(problems):
        raise DefinitionError(diagnostics)
    definition = draft.definition
    return Compiled(definition, graph, make_plan(definition, graph), diagnostics)
