"""From the text of a record to typed columns. What cannot be decoded is told, never guessed and never half kept.

A decoder adds the payload columns to a frame and lists what can be wrong with a record. Conditions run on every
record; messages only on bad ones, so they may be slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import Column as PlanColumn
from tidemark.compiler.plan.plan import SourcePlan
from tidemark.connectors.connector import FlatJson
from tidemark.record_errors import RecordError
from tidemark.schema import Type, parse_type

VALUE = "__tm_value"
_PARSED = "__tm_parsed"
_RECORD = "__tm_record"
# Spark also takes text in single quotes, which is no JSON.
_STRICT_JSON = {"allowSingleQuotes": "false"}
# The name of a column that nobody has: Spark would take its own one for what could not be read, and not fill it.
_LEAVING_OUT = {**_STRICT_JSON, "mode": "DROPMALFORMED", "columnNameOfCorruptRecord": "__tm_refused"}
_NOT_UTF8 = "the record is not valid UTF-8"
_NO_VALUE = "the record has no value"
# Four digits in an exponent, more than a number of anything has; and what a double makes of such a number. In text,
# Java takes digits of any script, and Spark passes over commas.
_ENDLESS = r"[\p{Nd}.,][eE],*[-+]?[0,]*+(?:\p{Nd},*){4}"
_NO_DOUBLE = r'Infinity|"-?0\.0"'


@dataclass(frozen=True)
class Problem:
    """`condition` is true for a bad record (null counts as false); `code` and `message` say why.

    `leaves_null` names the payload column that such a record has no value for, where that follows.

    Conditions must be cheap, and free of what Spark cannot compile: one that is not made the whole scan five times
    slower, although it was never evaluated.
    """

    condition: Column
    code: Column
    message: Column
    leaves_null: str | None = None


def problem(code: RecordError, condition: Column, message: Column | str, leaves_null: str | None = None) -> Problem:
    return Problem(condition, F.lit(code.value), F.lit(message) if isinstance(message, str) else message, leaves_null)


@dataclass(frozen=True)
class Decoded:
    frame: DataFrame
    problems: tuple[Problem, ...]


def decode(frame: DataFrame, plan: SourcePlan) -> Decoded:
    """Adds the payload columns of `plan` to a frame; a text format reads the column VALUE."""
    return DECODERS[plan.format](frame, plan)


def _json(frame: DataFrame, plan: SourcePlan) -> Decoded:
    """Each line is read as the one element of an array: what follows the object is then an error, not ignored."""
    fields = [(column.name, parse_type(column.type)) for column in plan.columns]
    wrapped = F.concat(F.lit("["), F.col(VALUE), F.lit("]"))
    frame = frame.withColumn(_PARSED, _parsed_records(wrapped, fields))
    one = (F.size(_PARSED) == 1) & F.is_valid_utf8(VALUE)
    frame = frame.withColumn(_RECORD, F.when(one, F.col(_PARSED)[0]))
    payload = [_from_json_value(F.col(_RECORD).getField(name), type_).alias(name) for name, type_ in fields]
    problems = [
        _not_decoded(wrapped, fields),
        *_unread(fields, lambda type_: type_.name == "timestamp", lambda name: F.col(_RECORD).getField(name), F.col),
    ]
    return Decoded(frame.select("*", *payload), tuple(problems))


def decode_flat_json(flat: FlatJson, plan: SourcePlan) -> Decoded:
    """Flat JSON lines through Spark's own reader, which takes half the time of `from_json` and has no line to show.

    It leaves out what it cannot read, which the number of lines tells. Asked to mark it instead, it copies every row.
    """
    fields = [(column.name, parse_type(column.type)) for column in plan.columns]
    raw = {name: f"__tm_raw_{name}" if _converted(type_) else name for name, type_ in fields}
    columns = ", ".join(f"`{name}` {_flat_type(type_)}" for name, type_ in fields)
    frame = flat.read(columns, _LEAVING_OUT).withColumnsRenamed(raw)
    converted = {name: _from_flat_value(F.col(raw[name]), type_) for name, type_ in fields if raw[name] != name}
    problems = _unread(fields, _converted, lambda name: F.col(raw[name]), F.col)
    return Decoded(frame.withColumns(converted) if converted else frame, tuple(problems))


def fits_flat_json(plan: SourcePlan) -> bool:
    """Whether Spark's own reader can be kept from writing out endless numbers: no decimal stands inside a field."""
    types = [parse_type(column.type) for column in plan.columns]
    return not any(_decimals(type_) for type_ in types if type_.items or type_.fields)


def _converted(type_: Type) -> bool:
    return bool(type_.unit) or type_.name in ("timestamp", "decimal")


def _flat_type(type_: Type) -> str:
    """Decimals are read as text, which this reader, unlike `from_json`, gives as it is written."""
    read_as = _json_type(type_)
    return "string" if read_as.startswith("decimal") else read_as


def _from_flat_value(text: Column, type_: Type) -> Column:
    """As Spark's JSON reader makes a decimal of text: commas are passed over, spaces are not."""
    if not (read_as := _json_type(type_)).startswith("decimal"):
        return _from_json_value(text, type_)
    number = F.when(~text.rlike(rf"\s|{_ENDLESS}"), F.translate(text, ",", "").try_cast(read_as))
    return _from_json_value(number, type_)


def _parsed_records(wrapped: Column, fields: list[tuple[str, Type]]) -> Column:
    record = Type("struct", fields=tuple(fields))
    return _parsed(wrapped, _json_schema(fields), _decimals(Type("array", items=(record,))))


def _parsed(text: Column, ddl: str, decimals: str | None) -> Column:
    """JSON as a value of that type; null for a text with a number that Spark would write out, digit by digit.

    It does so for a decimal, and 1e100000000 takes it hours. `decimals` is the type with nothing but its decimals, as
    text. Of that, what stood in quotation marks is as it was; a number has gone through a double.
    """
    if decimals is None:
        return F.from_json(text, ddl, _STRICT_JSON)
    found = F.to_json(F.from_json(text, decimals, _STRICT_JSON))
    numbers = F.regexp_replace(F.regexp_replace(text, r"\\.", ""), '"[^"]*"', "")
    endless = text.rlike(_ENDLESS) & (found.rlike(_ENDLESS) | (numbers.rlike(_ENDLESS) & found.rlike(_NO_DOUBLE)))
    return F.from_json(F.when(~F.coalesce(endless, F.lit(False)), text), ddl, _STRICT_JSON)


def _decimals(type_: Type) -> str | None:
    """The type with nothing but its decimals, as text; None where it has none."""
    if type_.fields:
        inside = [(name, found) for name, field in type_.fields if (found := _decimals(field))]
        return f"struct<{','.join(f'`{name}`:{found}' for name, found in inside)}>" if inside else None
    if type_.items:
        found = _decimals(type_.items[-1])
        return f"{type_.name}<{','.join([*['string'] * (len(type_.items) - 1), found])}>" if found else None
    return "string" if _json_type(type_).startswith("decimal") else None


def _not_decoded(wrapped: Column, fields: list[tuple[str, Type]]) -> Problem:
    """One cheap condition; which of the reasons it was is worked out for bad records only."""
    invalid, is_object = ~F.is_valid_utf8(VALUE), _is_json_object(wrapped)
    empty = F.col(VALUE).isNull()
    code = (
        F.when(empty, RecordError.MISSING_VALUE.value)
        .when(invalid, RecordError.INVALID_UTF8.value)
        .when(is_object, RecordError.WRONG_TYPE.value)
    )
    message = F.when(empty, _NO_VALUE).when(invalid, _NOT_UTF8).when(is_object, _misfit_field(wrapped, fields))
    plain = "the record is not one JSON object"
    return Problem(F.col(_RECORD).isNull(), code.otherwise(RecordError.BAD_JSON.value), message.otherwise(plain))


def _json_schema(fields: Iterable[tuple[str, Type]]) -> str:
    inside = ",".join(f"`{name}`:{_json_type(type_)}" for name, type_ in fields)
    return f"array<struct<{inside}>>"


def _json_type(type_: Type) -> str:
    """What a field is read as. Times are read as text, so that a bare number is not taken for seconds."""
    if type_.unit in ("s", "ms"):
        return "decimal(18,6)" if type_.unit == "s" else "decimal(18,3)"
    if type_.unit == "us":
        return "bigint"
    return "string" if type_.name == "timestamp" else type_.ddl


def _from_json_value(value: Column, type_: Type) -> Column:
    if type_.unit:
        return epoch_timestamp(value, type_.unit)
    return iso_timestamp(value) if type_.name == "timestamp" else value


def _is_json_object(wrapped: Column) -> Column:
    objects = F.from_json(wrapped, "array<map<string,string>>", _STRICT_JSON)
    return (F.size(objects) == 1) & objects[0].isNotNull()


def _misfit_field(wrapped: Column, fields: list[tuple[str, Type]]) -> Column:
    """Names the first field that cannot be read as its type, by reading each one alone."""
    tried = [
        F.when(
            _parsed_records(wrapped, [(name, type_)]).isNull(),
            F.lit(f"field `{name}` cannot be read as {type_}"),
        )
        for name, type_ in fields
    ]
    return F.coalesce(*tried, F.lit("the record does not fit the schema"))


def _unread(
    fields: Iterable[tuple[str, Type]],
    converted: Callable[[Type], bool],
    raw: Callable[[str], Column],
    read: Callable[[str], Column],
) -> list[Problem]:
    """Fields whose text is there but whose value is not: only those that are converted after parsing."""
    return [
        problem(
            RecordError.WRONG_TYPE,
            raw(name).isNotNull() & read(name).isNull(),
            F.concat(
                F.lit(f"field `{name}` cannot be read as {type_}: "), F.substring(raw(name).cast("string"), 1, 100)
            ),
            leaves_null=name,
        )
        for name, type_ in fields
        if converted(type_)
    ]


def iso_timestamp(text: Column) -> Column:
    """ISO-8601 text; a bare time of day, which Spark would complete with today's date, is not one."""
    return F.when(F.instr(text, "-") == 5, F.try_to_timestamp(text))


def epoch_timestamp(number: Column, unit: str) -> Column:
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]
    return F.timestamp_micros((number * factor).cast("bigint"))


def _csv(frame: DataFrame, plan: SourcePlan) -> Decoded:
    """Fields by position in the schema's order; a line that repeats the column names is a header, not a record."""
    fields = [(column.name, parse_type(column.type)) for column in plan.columns]
    texts = ", ".join(f"`{name}` string" for name, _ in fields)
    frame = frame.withColumn(_RECORD, F.from_csv(F.col(VALUE), texts, {"escape": '"', "mode": "PERMISSIVE"}))
    names = F.array(*[F.lit(name) for name, _ in fields])
    header = F.array(*[F.trim(F.col(_RECORD).getField(name)) for name, _ in fields]) == names
    frame = frame.where(~F.coalesce(header, F.lit(False)))

    def raw(name: str) -> Column:
        return F.col(_RECORD).getField(name)

    payload = [_from_text(raw(name), type_).alias(name) for name, type_ in fields]
    problems = [_missing(), problem(RecordError.INVALID_UTF8, ~F.is_valid_utf8(VALUE), _NOT_UTF8)]
    problems += [
        problem(
            RecordError.WRONG_TYPE,
            raw(name).isNotNull() & F.col(name).isNull(),
            F.concat(F.lit(f"field `{name}` cannot be read as {type_}: "), F.substring(raw(name), 1, 100)),
        )
        for name, type_ in fields
        if type_.name != "string"
    ]
    return Decoded(frame.select("*", *payload), tuple(problems))


def _from_text(text: Column, type_: Type) -> Column:
    if type_.unit:
        return epoch_timestamp(text.try_cast("decimal(20,6)"), type_.unit)
    if type_.name == "timestamp":
        return iso_timestamp(text)
    if type_.name == "binary":
        return F.try_to_binary(text, F.lit("base64"))
    if type_.items or type_.fields:
        return _parsed(text, type_.ddl, _decimals(type_))
    return text if type_.name == "string" else F.trim(text).try_cast(type_.ddl)


def _text(frame: DataFrame, plan: SourcePlan) -> Decoded:
    name = plan.columns[0].name
    bad = problem(RecordError.INVALID_UTF8, ~F.is_valid_utf8(VALUE), _NOT_UTF8)
    return Decoded(frame.withColumn(name, F.col(VALUE)), (_missing(), bad))


def _missing() -> Problem:
    return problem(RecordError.MISSING_VALUE, F.col(VALUE).isNull(), _NO_VALUE)


def _raw(frame: DataFrame, plan: SourcePlan) -> Decoded:
    """The bytes as they are; a record without a value is an event with a null."""
    return Decoded(frame.withColumn(plan.columns[0].name, F.col(VALUE).cast("binary")), ())


def _native(frame: DataFrame, plan: SourcePlan) -> Decoded:
    """The connector yields the payload columns itself; only stored epoch numbers are left to convert."""
    units = {column.name: parse_type(column.type).unit for column in plan.columns}
    converted = {name: epoch_timestamp(F.col(name), unit) for name, unit in units.items() if unit}
    return Decoded(frame.withColumns(converted) if converted else frame, ())


def raw_bytes(plan: SourcePlan, columns: Iterable[PlanColumn]) -> Column:
    """The record as it came; for formats without text, its columns as JSON."""
    if DECODERS[plan.format] is _native:
        return F.to_json(F.struct(*[F.col(column.name) for column in columns])).cast("binary")
    return F.col(VALUE).cast("binary")


DECODERS: dict[str, Callable[[DataFrame, SourcePlan], Decoded]] = {
    "jsonl": _json,
    "json": _json,
    "csv": _csv,
    "text": _text,
    "raw": _raw,
    "parquet": _native,
    "columns": _native,
}
