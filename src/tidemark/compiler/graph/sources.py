"""A source as a node: its schema, and the columns that give an event its id, key and time."""

from __future__ import annotations

from tidemark.compiler.definition.job import SourceDefinition
from tidemark.compiler.definition.options import COMPOUND, SINGLE_COLUMN
from tidemark.compiler.diagnostics.suggest import listed
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.graph.node import SourceNode
from tidemark.connectors.catalogue import BY_NAME, FORMATS_TO_COME
from tidemark.schema import LONG, STRING, Type

GENERATOR_SCOPE = {"n": LONG}
PROCESSING_TIME = "_ingestion_time"


def build_source(id_: str, definition: SourceDefinition, checker: Checker) -> SourceNode | None:
    """The node, or None when something was refused."""
    _check_format(definition, checker)
    computed = _compute(definition, checker)
    columns = _columns(definition, computed, checker)
    if columns is None:
        _check_names(definition, checker)
        return None
    if columns:
        _check_roles(definition, columns, checker)
    _check_single_column(definition, columns, checker)
    if definition.options is not None:
        checker.add(definition.options.problems(columns), definition.connector)
    if checker.failed():
        return None
    sql = {name: text for name, (text, _) in computed.items()}
    options = definition.options.planned(sql) if definition.options else {}
    return SourceNode(id_, definition, columns, options, _record_format(definition))


def _compute(definition: SourceDefinition, checker: Checker) -> dict[str, tuple[str, Type]]:
    """Columns that are expressions over the number of the event: the SQL and type of each."""
    written = (definition.options.computed_columns() if definition.options else None) or {}
    checker.new_names(written, {}, definition.connector, "columns")
    found = {
        name: checker.expression(text, GENERATOR_SCOPE, definition.connector, "columns", name)
        for name, text in written.items()
    }
    return {name: (checked.sql, checked.type) for name, checked in found.items() if checked}


def _columns(
    definition: SourceDefinition, computed: dict[str, tuple[str, Type]], checker: Checker
) -> dict[str, Type] | None:
    if checker.failed():
        return None
    types = {name: type_ for name, (_, type_) in computed.items()}
    written = definition.columns if definition.columns is not None else _default(definition)
    if written is not None:
        types = _written(definition, written, types, checker)
    elif definition.options is None or definition.options.computed_columns() is None:
        hint = "Write `schema: {column: type}`."
        checker.refuse("missing_field", "`schema` is missing", hint)
    return None if checker.failed() else types


def _default(definition: SourceDefinition) -> dict[str, str] | None:
    single = SINGLE_COLUMN.get(definition.format or "")
    if single is not None:
        return {"value": single}
    return definition.options.default_schema() if definition.options else None


def _record_format(definition: SourceDefinition) -> str:
    """The format that stands beside the connector, where it can; the first it knows when none is named."""
    formats = BY_NAME[definition.connector].formats
    if formats:
        return definition.format or formats[0]
    return definition.options.record_format if definition.options else ""


def _written(
    definition: SourceDefinition, written: dict[str, str], computed: dict[str, Type], checker: Checker
) -> dict[str, Type]:
    columns = checker.schema(written, "schema")
    if not written:
        checker.refuse("missing_field", "the schema has no column", "Write `schema: {column: type}`.", "schema")
    for name in sorted({*computed, *columns}) if computed and not checker.failed() else ():
        if computed.get(name) != columns.get(name):
            ours, theirs = columns.get(name) or "missing", computed.get(name) or "missing"
            message = f"`{name}` is {ours} in the schema and {theirs} in the columns"
            checker.refuse("schema_mismatch", message, "Leave the schema out: it follows from the columns.", "schema")
            break
    return columns


def _check_format(definition: SourceDefinition, checker: Checker) -> None:
    if definition.format is None or definition.options is None:
        return
    formats = BY_NAME[definition.connector].formats
    if definition.format in FORMATS_TO_COME:
        checker.not_available(f"the format {definition.format}", "format")
    elif not formats:
        hint = f"Leave it out; {definition.connector} says its format, if it has one, inside its options."
        checker.refuse("bad_value", f"`format` cannot stand beside {definition.connector}", hint, "format")
    elif definition.format not in formats:
        message = f"there is no format `{definition.format}`"
        checker.refuse("bad_value", message, listed(formats, what="formats"), "format")


def _check_single_column(definition: SourceDefinition, columns: dict[str, Type], checker: Checker) -> None:
    needed = SINGLE_COLUMN.get(definition.format or "")
    if needed is not None and columns and [str(type_) for type_ in columns.values()] != [needed]:
        hint = f"Leave the schema out (the column is then `value`), or name one {needed} column."
        message = f"a record of the format {definition.format} is exactly one {needed} column"
        checker.refuse("schema_mismatch", message, hint, "schema")


def _check_names(definition: SourceDefinition, checker: Checker) -> None:
    """Of a schema with a type that cannot be read the names are known, and whether roles are among them."""
    written = dict.fromkeys(definition.columns or {}, STRING)
    for role in ("event_id", "key", "event_time") if written else ():
        name = getattr(definition, role)
        if name is not None and name != PROCESSING_TIME:
            checker.column(name, written, role)


def _check_roles(definition: SourceDefinition, columns: dict[str, Type], checker: Checker) -> None:
    for role, name in (("event_id", definition.event_id), ("key", definition.key)):
        type_ = checker.column(name, columns, role) if name is not None else None
        if type_ is not None and type_.name in COMPOUND:
            message = f"`{name}` is {type_}, and `{role}` must have a plain type"
            checker.refuse("wrong_column_type", message, "Choose another column.", role)
    time = definition.event_time
    if time is None or time == PROCESSING_TIME:
        return
    type_ = checker.column(time, columns, "event_time")
    if type_ is not None and type_.name != "timestamp":
        hint = f"Write `{time}: timestamp` (ISO-8601 text) or `{time}: timestamp(ms)` (a number) in the schema."
        checker.refuse(
            "wrong_column_type", f"`{time}` is {type_}, and an event time must be a timestamp", hint, "event_time"
        )
