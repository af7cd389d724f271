"""Text, or plain data, to a `JobDefinition`: every part is read by itself, so that one mistake hides no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tidemark.compiler.definition.case import CaseDefinition
from tidemark.compiler.definition.connect import Connected, Direction, connect, without_connectors
from tidemark.compiler.definition.document import Document
from tidemark.compiler.definition.job import (
    JobDefinition,
    JobFields,
    OperatorDefinition,
    SinkDefinition,
    SinkFields,
    SourceDefinition,
    SourceFields,
)
from tidemark.compiler.definition.model import Id
from tidemark.compiler.definition.read import read
from tidemark.compiler.definition.shape import AnyModel, check_shape, field_names, kind_of
from tidemark.compiler.diagnostics.diagnostic import Diagnostic, Path, Problem, errors
from tidemark.compiler.diagnostics.suggest import hint_for, listed
from tidemark.compiler.graph.operators.table import OPERATORS_BY_NAME, OPERATORS_TO_COME
from tidemark.connectors import catalogue

SECTIONS = ("sources", "operators", "sinks", "tests")
_ID: TypeAdapter[str] = TypeAdapter(Id)
_UNREADABLE = JobFields(tidemark=1, name="unreadable")


@dataclass
class Draft:
    """What could be read. `broken` are the ids whose part could not, so that nobody asks why they are missing.

    `mended` are those of which something was left out: it is reported, and the rest of the part can be checked. They
    come with the fields in which that was.
    """

    document: Document
    problems: list[Problem]
    fields: JobFields = _UNREADABLE
    sources: dict[str, SourceDefinition] = field(default_factory=dict)
    operators: dict[str, OperatorDefinition] = field(default_factory=dict)
    sinks: dict[str, SinkDefinition] = field(default_factory=dict)
    tests: dict[int, CaseDefinition] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    mended: dict[str, set[str]] = field(default_factory=dict)

    @property
    def definition(self) -> JobDefinition:
        """The whole job; only for a draft without errors."""
        written = {name: getattr(self.fields, name) for name in self.fields.model_fields_set}
        return JobDefinition(
            **written,
            sources=self.sources,
            operators=self.operators,
            sinks=self.sinks,
            tests=tuple(self.tests.values()),
        )


def parse(text: str) -> tuple[JobDefinition | None, tuple[Diagnostic, ...]]:
    """The definition, or None and what is wrong with its shape."""
    draft = draft_of_text(text)
    definition = None if errors(draft.problems) else draft.definition
    return definition, draft.document.diagnose(draft.problems)


def draft_of_text(text: str) -> Draft:
    document, problems = read(text)
    unread = document.data is None and problems
    return Draft(document, problems) if unread else _drafted(document, problems)


def draft_of_definition(definition: JobDefinition) -> Draft:
    return _drafted(Document(definition.to_dict()), [])


def _drafted(document: Document, problems: list[Problem]) -> Draft:
    draft = Draft(document, problems)
    data = document.data
    if not isinstance(data, dict):
        hint = "Begin with `tidemark: 1`, then name, sources, operators and sinks."
        problems.append(
            Problem("not_a_mapping", f"a definition is a mapping of names to values, not {kind_of(data)}", hint)
        )
        return draft
    _read_fields(draft, data)
    _read_sources(draft, _section(draft, data, "sources", required=True))
    _read_operators(draft, _section(draft, data, "operators"))
    _read_sinks(draft, _section(draft, data, "sinks", required=True))
    _read_tests(draft, data.get("tests"))
    problems.extend(_shared_ids(document, data))
    return draft


def _read_fields(draft: Draft, data: dict[str, Any]) -> None:
    whole = {name: value for name, value in data.items() if name not in SECTIONS}
    fields = _shape(draft, JobFields, whole, (), others=SECTIONS)
    if fields is None:
        return
    draft.fields = fields
    if fields.mode == "realtime":
        hint = "Use `mode: microbatch`, or leave it out."
        draft.problems.append(Problem("not_available", "`mode: realtime` is not available yet", hint, ("mode",)))


def _section(draft: Draft, data: dict[str, Any], name: str, *, required: bool = False) -> dict[str, Any]:
    members = data.get(name)
    if members is None or members == {}:
        if required:
            message = f"a job needs at least one of its `{name}`"
            draft.problems.append(
                Problem("missing_field", message, f"Add `{name}:` with one entry.", (name,), at_key=True)
            )
        return {}
    if isinstance(members, dict):
        return members
    message = f"`{name}` must be a mapping of ids, not {kind_of(members)}"
    draft.problems.append(Problem("wrong_type", message, f"Write `{name}: {{id: …}}`.", (name,)))
    return {}


def _read_sources(draft: Draft, members: dict[str, Any]) -> None:
    for id_, data in _mending(draft, "sources", members):
        connected, fields = _endpoint(draft, SourceFields, data, ("sources", id_), "source")
        if connected and fields:
            written = {name: getattr(fields, name) for name in fields.model_fields_set}
            draft.sources[id_] = SourceDefinition.model_validate(
                {**written, "connector": connected.connector, "options": connected.options}
            )
        else:
            draft.broken.add(id_)


def _read_sinks(draft: Draft, members: dict[str, Any]) -> None:
    for id_, data in _mending(draft, "sinks", members):
        connected, fields = _endpoint(draft, SinkFields, data, ("sinks", id_), "sink")
        if connected and fields:
            draft.sinks[id_] = SinkDefinition.model_validate(
                {"input": fields.input, "connector": connected.connector, "options": connected.options}
            )
        else:
            draft.broken.add(id_)


def _endpoint(
    draft: Draft, model: type[AnyModel], data: dict[str, Any], path: Path, direction: Direction
) -> tuple[Connected | None, AnyModel | None]:
    connectors = catalogue.SOURCES if direction == "source" else catalogue.SINKS
    connected, problems = connect(data, path, direction, field_names(model))
    draft.problems.extend(problems)
    return connected, _shape(draft, model, without_connectors(data), path, others=connectors)


def _read_operators(draft: Draft, members: dict[str, Any]) -> None:
    for id_, data in _mending(draft, "operators", members):
        operator = _operator(draft, data, ("operators", id_))
        if operator is None:
            draft.broken.add(id_)
        else:
            draft.operators[id_] = operator


def _operator(draft: Draft, data: dict[str, Any], path: Path) -> OperatorDefinition | None:
    name = data.get("type")
    if name in OPERATORS_BY_NAME:
        return _shape(draft, OPERATORS_BY_NAME[name].fields, data, path)
    names = [*OPERATORS_BY_NAME]
    if name is None:
        problem = Problem("missing_field", "`type` is missing", listed(names, what="types"), (*path, "type"))
    elif name in OPERATORS_TO_COME:
        problem = Problem(
            "not_available", f"the operator {name} is not available yet", listed(names, what="types"), (*path, "type")
        )
    else:
        hint = hint_for(str(name), names, what="types")
        problem = Problem("unknown_operator_type", f"there is no operator type `{name}`", hint, (*path, "type"))
    draft.problems.append(problem)
    return None


def _read_tests(draft: Draft, cases: object) -> None:
    if cases is None:
        return
    if not isinstance(cases, list):
        message = f"`tests` must be a list, not {kind_of(cases)}"
        draft.problems.append(
            Problem("wrong_type", message, "Write `tests:` and one `- name: …` for each.", ("tests",))
        )
        return
    for index, data in enumerate(cases):
        known = len(draft.problems)
        case = _shape(draft, CaseDefinition, data, ("tests", index))
        if case is not None and len(draft.problems) == known:
            draft.tests[index] = case


def _mending(draft: Draft, section: str, members: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The members one after the other; those that are found to have problems are noted as mended."""
    for id_, data in _identified(draft, section, members):
        known = len(draft.problems)
        yield id_, data
        if touched := {str(problem.path[2]) for problem in draft.problems[known:] if len(problem.path) > 2}:
            draft.mended[id_] = touched


def _identified(draft: Draft, section: str, members: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The members that are mappings with a proper id; the others are reported and broken."""
    for id_, data in members.items():
        problem = _bad_id(id_) or _not_a_mapping(section, data)
        if problem is None:
            yield id_, data
        else:
            draft.broken.add(id_)
            draft.problems.append(problem.below(section, id_))


def _bad_id(id_: str) -> Problem | None:
    try:
        _ID.validate_python(id_)
    except ValidationError as error:
        context = error.errors()[0]["ctx"]
        return Problem("bad_id", context["message"], context["hint"], at_key=True)
    return None


def _not_a_mapping(section: str, data: object) -> Problem | None:
    if isinstance(data, dict):
        return None
    message = f"each of `{section}` must be a mapping of names to values, not {kind_of(data)}"
    return Problem("wrong_type", message, "Write `{…}` or indented fields.")


def _shared_ids(document: Document, data: dict[str, Any]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for section in ("sources", "operators", "sinks"):
        members = data.get(section)
        for id_ in members if isinstance(members, dict) else ():
            if id_ in first:
                yield _shared(document, id_, first[id_], section)
            first.setdefault(id_, section)


def _shared(document: Document, id_: str, first: str, again: str) -> Problem:
    mark = document.keys.get((first, id_))
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    message = f"`{id_}` is already the id of one of the {first}{where}"
    return Problem("duplicate_id", message, "Ids are unique over the whole job: rename one.", (again, id_), at_key=True)


def _shape(
    draft: Draft, model: type[AnyModel], data: object, path: Path, *, others: tuple[str, ...] = ()
) -> AnyModel | None:
    instance, problems = check_shape(model, data, path, others=others)
    draft.problems.extend(problems)
    return instance
