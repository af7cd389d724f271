"""Writes the tables of `docs/reference/` from the code: `python scripts/generate_docs.py [--check]`.

The prose of a page is written by hand; between `<!-- begin NAME -->` and `<!-- end NAME -->` stands what this script
makes of the code. With `--check` nothing is written, and the exit code is 1 when a page would change.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer
from typer.testing import CliRunner

import tidemark.errors
from tidemark.cli.main import app
from tidemark.compiler.definition.job import JobFields, SinkFields, SourceFields
from tidemark.compiler.diagnostics.codes import CODES
from tidemark.compiler.graph.aggregates import AGGREGATES, LATER_AGGREGATES, Aggregate
from tidemark.compiler.graph.expression.function_rules import Function, Parameter
from tidemark.compiler.graph.expressions import check, check_aggregate
from tidemark.compiler.graph.functions import EXAMPLE_COLUMNS, FAMILIES, UNREPEATABLE_FUNCTIONS
from tidemark.compiler.graph.operators.operator import OperatorType
from tidemark.compiler.graph.operators.table import OPERATORS, OPERATORS_TO_COME
from tidemark.compiler.graph.operators.window_kinds import KINDS_TO_COME
from tidemark.connectors.catalogue import CONNECTORS, FORMATS_TO_COME, Connector
from tidemark.connectors.postgres.types import ACCEPTED, declared
from tidemark.control_plane.api.routes import ROUTES, Route
from tidemark.control_plane.jobs.lifecycle import TRANSITIONS
from tidemark.control_plane.metrics import COUNTERS, GAUGES, HISTOGRAMS
from tidemark.errors import TidemarkError
from tidemark.record_errors import MEANINGS, ROW_MEANINGS, RecordError, RowError
from tidemark.schema import SIMPLE, SYSTEM_COLUMNS, parse_type
from tidemark.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.reference_fields import field_table, table  # noqa: E402  # found through the line above

REFERENCE = ROOT / "docs" / "reference"
BLOCK = re.compile(r"(<!-- begin (?P<name>[a-z-]+) -->\n)(?P<body>.*?)(<!-- end (?P=name) -->)", re.DOTALL)
COMMANDS_WIDTH = 100

_EXAMPLE_TYPES = {
    "decimal": "decimal(9,2)",
    "array": "array<string>",
    "map": "map<string,long>",
    "struct": "struct<a:int>",
}
WINDOW_KINDS = (
    ("`{tumbling: 1m}`", "one window after the other; `offset` moves them all"),
    ("`{sliding: 10m, every: 1m}`", "overlapping windows, one starting `every` so often; `offset` moves them all"),
    (
        "`{session: 30m}`",
        "per key: events that follow each other at most the gap apart; it ends a gap after the last. An event at that "
        "very end belongs to it as long as it is open, and begins the next one when the watermark has just reached it",
    ),
)


def operators() -> Iterator[str]:
    for operator in OPERATORS:
        yield from _operator(operator)
    yield f"Not available yet: {_names(OPERATORS_TO_COME)}.\n"


def _operator(operator: OperatorType) -> Iterator[str]:
    yield f"### {operator.name}\n"
    more = ", and one for each name in `when`" if operator.name == "branch" else ""
    yield f"{operator.docs} Ports: {_names(operator.ports)}{more}.\n"
    yield field_table(operator.fields, skip=("type",))


def windows() -> Iterator[str]:
    yield table(("window", "meaning"), WINDOW_KINDS)
    yield f"Not available yet: {_names(KINDS_TO_COME)} windows.\n"


def functions() -> Iterator[str]:
    for family, members in FAMILIES:
        if members is not UNREPEATABLE_FUNCTIONS:
            yield f"### {family.capitalize()}\n"
            rows = [(f"`{_signature(each)}`", each.doc, f"`{each.example}`", _result(each)) for each in members]
            yield table(("function", "meaning", "example", "gives"), rows)


def unrepeatable_functions() -> Iterator[str]:
    yield f"{_names(function.name for function in UNREPEATABLE_FUNCTIONS)}\n"


def example_columns() -> Iterator[str]:
    yield ", ".join(f"`{name}: {type_}`" for name, type_ in EXAMPLE_COLUMNS.items()) + "\n"


def _signature(function: Function) -> str:
    return f"{function.name}({', '.join(_place(parameter) for parameter in function.parameters)})"


def _place(parameter: Parameter) -> str:
    label = f"{parameter.label}, …" if parameter.repeated else parameter.label
    return f"[{label}]" if parameter.optional else label


def _result(function: Function) -> str:
    return f"`{check(function.example, EXAMPLE_COLUMNS).type}`"


def aggregates() -> Iterator[str]:
    rows = [(f"`{each.example}`", each.doc, _takes(each), _aggregated(each)) for each in AGGREGATES]
    yield table(("aggregate", "meaning", "takes", "gives"), rows)
    yield f"Not available yet: {_names(sorted(LATER_AGGREGATES))}.\n"


def sketches() -> Iterator[str]:
    rows = [(f"`{each.name}`", each.error_bound) for each in AGGREGATES if each.error_bound]
    yield table(("sketch", "error bound"), rows)


def _takes(aggregate: Aggregate) -> str:
    labels = [rule.label for rule in aggregate.arguments]
    constants = [
        f"{each.label} ({each.default} when left out)" if each.default else each.label for each in aggregate.parameters
    ]
    text = ", then ".join([*labels, *constants])
    return f"nothing, or {text}" if aggregate.optional else text


def _aggregated(aggregate: Aggregate) -> str:
    return f"`{check_aggregate(aggregate.example, EXAMPLE_COLUMNS).type}`"


def connectors() -> Iterator[str]:
    for connector in CONNECTORS:
        if connector.source or connector.sink:
            yield from _connector(connector)
    later = [(f"`{each.name}`", each.docs, ", ".join(each.later)) for each in CONNECTORS if each.later]
    yield "### Not available yet\n"
    yield table(("connector", "what it is", "as"), later)


def _connector(connector: Connector) -> Iterator[str]:
    yield f"### {connector.name}\n"
    yield f"{connector.docs}\n"
    if connector.source:
        yield "As a source:\n"
        yield field_table(connector.source)
    if connector.sink:
        yield f"As a sink (guarantee: {connector.guarantee}):\n"
        yield field_table(connector.sink)


def job_fields() -> Iterator[str]:
    for title, model in (
        ("The job", JobFields),
        ("A source, beside its connector", SourceFields),
        ("A sink, beside its connector", SinkFields),
    ):
        yield f"### {title}\n"
        yield field_table(model)


def system_columns() -> Iterator[str]:
    yield table(("column", "type"), [(f"`{name}`", f"`{type_}`") for name, type_ in SYSTEM_COLUMNS])


def column_types() -> Iterator[str]:
    plain = (*SIMPLE, *(f"timestamp({unit})" for unit in ("s", "ms", "us")), "decimal(p,s)")
    yield f"{_names(plain)}, and of those {_names(('array<T>', 'map<K,V>', 'struct<name:T,…>'))}.\n"


def formats_to_come() -> Iterator[str]:
    yield f"{_names(FORMATS_TO_COME)}\n"


def errors() -> Iterator[str]:
    rows = [(f"`{kind.code}`", kind.domain, kind.retry, meaning) for kind, meaning in error_classes()]
    yield table(("code", "whose move", "tried again", "meaning"), rows)


def error_classes() -> Iterator[tuple[type[TidemarkError], str]]:
    """Every class of the tree with what the drawing in its module says about it."""
    drawn = re.findall(r"[├└]── (\w+) +\w+ +(.+)", tidemark.errors.__doc__ or "")
    for name, meaning in drawn:
        yield getattr(tidemark.errors, name), meaning


def diagnostics() -> Iterator[str]:
    for group in dict.fromkeys(code.group for code in CODES):
        yield f"### {group.capitalize()}\n"
        yield table(("code", "meaning"), [(f"`{code.code}`", code.meaning) for code in CODES if code.group == group])


def record_errors() -> Iterator[str]:
    yield table(("code", "meaning"), [(f"`{code}`", meaning) for code, meaning in MEANINGS.items()])


def row_errors() -> Iterator[str]:
    yield table(("code", "meaning"), [(f"`{code}`", meaning) for code, meaning in ROW_MEANINGS.items()])


def postgres_types() -> Iterator[str]:
    types = {name: parse_type(_EXAMPLE_TYPES.get(name, name)) for name in ACCEPTED}
    rows = [(f"`{type_}`", f"`{declared(type_)}`", _names(ACCEPTED[name])) for name, type_ in types.items()]
    yield table(("type", "in a new table", "accepted in an existing one"), rows)


def commands() -> Iterator[str]:
    command = typer.main.get_command(app)
    yield _help([])
    for name, known in getattr(command, "commands", {}).items():
        yield f"### {name}\n"
        yield _help([name])
        for inner in getattr(known, "commands", {}):
            yield f"### {name} {inner}\n"
            yield _help([name, inner])


def _help(command: list[str]) -> str:
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="tidemark", terminal_width=COMMANDS_WIDTH)
    assert shown.exit_code == 0, shown.output
    return f"```text\n{shown.output.strip()}\n```\n"


def routes() -> Iterator[str]:
    rows = [
        (f"`{route.method} {route.path}`", route.role or "anybody", _answers(route), _first_line(route.call.__doc__))
        for route in ROUTES
        if not route.internal
    ]
    yield table(("call", "role", "answers", "meaning"), rows)


def _answers(route: Route) -> str:
    return ", ".join(str(status) for status in sorted({route.status, *route.answers, *route.refusals}))


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]


def metrics() -> Iterator[str]:
    gauges = [(name, "gauge", labels, text) for name, (text, labels) in GAUGES.items()]
    counters = [(f"{name}_total", "counter", labels, text) for name, (text, labels) in COUNTERS.items()]
    histograms = [(name, "histogram", ("job", *labels), text) for name, text, labels in HISTOGRAMS]
    rows = [(f"`{name}`", kind, _names(labels), text) for name, kind, labels, text in (*gauges, *counters, *histograms)]
    yield table(("metric", "kind", "labels", "meaning"), sorted(rows))


def job_states() -> Iterator[str]:
    rows = [(f"`{old}`", _names(new) or "its last state") for old, new in TRANSITIONS.items()]
    yield table(("state", "can become"), rows)


def settings() -> Iterator[str]:
    rows = [
        (f"`{name}`", f"`TIDEMARK_{name.upper()}`", f"`{field.default}`" if field.default not in (None, ()) else "none")
        for name, field in Settings.model_fields.items()
    ]
    yield table(("in `tidemark.toml`", "variable", "default"), rows)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


BLOCKS: dict[str, Callable[[], Iterator[str]]] = {
    "operators": operators,
    "windows": windows,
    "functions": functions,
    "unrepeatable-functions": unrepeatable_functions,
    "example-columns": example_columns,
    "aggregates": aggregates,
    "sketches": sketches,
    "connectors": connectors,
    "job-fields": job_fields,
    "system-columns": system_columns,
    "column-types": column_types,
    "formats-to-come": formats_to_come,
    "errors": errors,
    "diagnostics": diagnostics,
    "record-errors": record_errors,
    "row-errors": row_errors,
    "postgres-types": postgres_types,
    "commands": commands,
    "settings": settings,
    "routes": routes,
    "metrics": metrics,
    "job-states": job_states,
}


def render(page: str) -> str:
    """A page with every block made anew; a block that nobody makes is a KeyError."""

    def made(match: re.Match[str]) -> str:
        body = "\n".join(part.rstrip("\n") + "\n" for part in BLOCKS[match["name"]]())
        return f"{match[1]}\n{body}\n{match[4]}"

    return BLOCK.sub(made, page)


def pages() -> list[Path]:
    return sorted(REFERENCE.glob("*.md"))


def holes() -> Iterator[str]:
    """What the code has and the pages do not, or the other way round."""
    shown = [match["name"] for path in pages() for match in BLOCK.finditer(path.read_text(encoding="utf-8"))]
    if sorted(shown) != sorted(BLOCKS):
        yield f"blocks in the pages: {sorted(shown)}, made here: {sorted(BLOCKS)}"
    if set(MEANINGS) != set(RecordError):
        yield f"record errors without a meaning: {set(RecordError) - set(MEANINGS)}"
    if set(ROW_MEANINGS) != set(RowError):
        yield f"row errors without a meaning: {set(RowError) - set(ROW_MEANINGS)}"
    drawn = {kind for kind, _ in error_classes()}
    if drawn != set(_below(TidemarkError)):
        yield f"errors that are not drawn: {set(_below(TidemarkError)) ^ drawn}"


def _below(kind: type[TidemarkError]) -> Iterator[type[TidemarkError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def main(check_only: bool) -> int:
    problems = list(holes())
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = render(before)
        if before != after and check_only:
            problems.append(f"{path.relative_to(ROOT)} is not what the code says: run `make docs`")
        elif before != after:
            path.write_text(after, encoding="utf-8")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(check_only="--check" in sys.argv[1:]))
