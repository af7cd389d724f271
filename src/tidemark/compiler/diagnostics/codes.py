"""Every code a diagnostic can carry, with its meaning: the reference of error codes is made from this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    code: str
    meaning: str
    group: str


def _group(group: str, **meanings: str) -> tuple[Code, ...]:
    return tuple(Code(code, meaning, group) for code, meaning in meanings.items())


CODES: tuple[Code, ...] = (
    *_group(
        "text",
        yaml_syntax="The text is neither YAML nor JSON, or holds more than one document.",
        empty_document="The definition is empty.",
        not_a_mapping="The definition is a list or a single value instead of a mapping.",
        too_large="The definition is too long, or anchors multiply it beyond the limit.",
        too_deep="Values are nested too deep.",
        tag_not_allowed="A YAML tag (`!name`) or directive (`%`) is used.",
        bad_character="The text holds a character that is not allowed.",
        duplicate_field="A field, or a column in a list, is given twice.",
    ),
    *_group(
        "fields",
        missing_field="A field that is needed is missing.",
        unknown_field="There is no such field.",
        wrong_type="A value is of another kind than the field takes, such as text for a number.",
        bad_value="A value is of the right kind but not one the field can have.",
        bad_duration="A duration is not a whole number and a unit, or is too short or too long.",
        bad_timestamp="A time is not ISO-8601.",
        bad_id="An id or job name has characters it cannot have, or is too long.",
        bad_name="The name of a column has characters it cannot have, or is too long.",
        bad_type="A column type cannot be read.",
        unknown_operator_type="There is no operator of this type.",
        missing_connector="A source or sink names no connector.",
        several_connectors="A source or sink names more than one connector.",
        wrong_connector="The connector cannot be used in this direction.",
        not_available="It is part of Tidemark's definition language but not available yet.",
    ),
    *_group(
        "graph",
        duplicate_id="Two sources, operators or sinks have the same id.",
        unknown_input="An input names no source or operator.",
        unknown_port="The source or operator has no port of this name.",
        duplicate_input="A union names an input twice.",
        cycle="Operators read each other in a circle.",
        side_port="A stateful operator or a union follows a side port.",
        table_not_stream="A stateful operator or a union follows changing results.",
        unknown_column="There is no column of this name here.",
        wrong_column_type="A column has a type that does not fit its role.",
        name_collision="A new name is already in use, or is one of the engine's own.",
        schema_mismatch="Two schemas that must be equal differ.",
        partition_mismatch="`partition` and `partitions` must be given together.",
        rate_or_count="A generator has neither a rate nor a count.",
        endless_source="A job that ends by itself reads a source that never does.",
        missing_key="Rows are to be replaced, but by which key is not said.",
        bad_window="The fields of a window do not fit together.",
        session_on_update="A session window cannot emit on update.",
        not_boolean="A condition is not true or false.",
        not_an_array="`each` is not an array.",
    ),
    *_group(
        "expressions",
        expression_syntax="An expression cannot be read.",
        expression_not_allowed="A form of SQL that expressions do not have, such as a subquery.",
        expression_too_deep="An expression is nested too deep.",
        expression_too_long="An expression is too long.",
        unknown_function="There is no function of this name.",
        function_not_allowed="The function exists in Spark but is not allowed in expressions.",
        non_deterministic="A replay would compute something else.",
        bad_argument="A function or operator gets something it cannot work on.",
        ambiguous_column="A name can mean more than one column.",
        aggregate_not_allowed="An aggregate stands where a value of one row is needed.",
        aggregate_expected="Exactly one aggregate is needed.",
    ),
    *_group(
        "tests",
        unknown_source="A test feeds a source that does not exist.",
        unknown_sink="A test expects rows from a sink that does not exist.",
    ),
    *_group(
        "warnings",
        port_not_connected="Late events or bad records are counted but not kept.",
        unused="A source, operator or port feeds nothing.",
    ),
)
