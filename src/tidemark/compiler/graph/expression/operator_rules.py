"""What operators accept, and the Spark SQL they become. Operands are checked already; a Refusal says what is wrong."""

from __future__ import annotations

from tidemark.compiler.graph.expression.function_rules import CONCATENATED, concatenated, refuse_time_word
from tidemark.compiler.graph.expression.literals import moved_days, quoted, time_sql
from tidemark.compiler.graph.expression.result import Checked, Refusal
from tidemark.compiler.graph.expression.type_rules import INTERVAL, arithmetic, castable, common_type, orderable, whole
from tidemark.schema import BOOLEAN, DATE, INT, NULL, STRING, TIMESTAMP, Type, array_of

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
BITWISE = ("&", "|", "^")
MICROSECONDS_PER_DAY = 86_400_000_000


def joined(sql: str, type_: Type, *operands: Checked) -> Checked:
    return Checked(sql, type_, frozenset().union(*(operand.columns for operand in operands)))


def condition(operand: Checked, where: str) -> Checked:
    if operand.type != BOOLEAN:
        raise Refusal(f"{where} needs a condition, not {operand.type}", "compare it with something, as in x > 0")
    return operand


def unary(operator: str, operand: Checked) -> Checked:
    if operator == "NOT":
        return joined(f"(NOT {condition(operand, 'NOT').sql})", BOOLEAN, operand)
    fits = whole(operand.type) if operator == "~" else operand.type.numeric
    if not fits:
        raise Refusal(f"{operator} needs a number, not {operand.type}")
    return joined(f"({operator} {operand.sql})", operand.type, operand)


def binary(operator: str, left: Checked, right: Checked) -> Checked:
    if operator in COMPARISONS:
        return comparison(operator, left, right)
    if operator == "||":
        return _concatenation(left, right)
    if operator in ("+", "-") and (INTERVAL in (left.type, right.type) or DATE in (left.type, right.type)):
        return _time_arithmetic(operator, left, right)
    if operator in BITWISE:
        found = common_type(left.type, right.type) if whole(left.type) and whole(right.type) else None
    else:
        found = arithmetic(operator, left.type, right.type, (left.literal, right.literal))
    if found is None:
        raise Refusal(
            f"{left.type} {operator} {right.type} has no meaning", _arithmetic_hint(operator, left.type, right.type)
        )
    return joined(f"({left.sql} {operator} {right.sql})", found, left, right)


def comparison(operator: str, left: Checked, right: Checked) -> Checked:
    left, right = comparable(left, right)
    return joined(f"({left.sql} {operator} {right.sql})", BOOLEAN, left, right)


def comparable(left: Checked, right: Checked) -> tuple[Checked, Checked]:
    """Both sides as they can be compared: a constant text beside a time is read as a time."""
    left, right = _as_time(left, right.type), _as_time(right, left.type)
    if NULL in (left.type, right.type):
        raise Refusal("a comparison with null is never true", "use `is null` or `is not null`")
    found = common_type(left.type, right.type)
    if found is None or not orderable(found):
        raise Refusal(f"{left.type} cannot be compared with {right.type}", _comparison_hint(left.type, right.type))
    return left, right


def _as_time(text: Checked, other: Type) -> Checked:
    if text.type != STRING or not isinstance(text.literal, str) or other not in (DATE, TIMESTAMP):
        return text
    sql = time_sql(text.literal, other)
    if sql is None:
        example = "'2026-01-31'" if other == DATE else "'2026-01-31 12:00:00'"
        raise Refusal(f"{text.literal!r} is not a {other}", f"write it as {example}")
    return Checked(sql, other, literal=text.literal)


def _comparison_hint(left: Type, right: Type) -> str | None:
    if STRING in (left, right):
        other = right if left == STRING else left
        return f"cast the text, as in cast(x as {other})" if castable(STRING, other) else None
    return "cast one side to the type of the other" if castable(left, right) else None


def _arithmetic_hint(operator: str, left: Type, right: Type) -> str | None:
    if operator == "+" and STRING in (left, right):
        return "join text with || or concat; cast text to a number to add it"
    if NULL in (left, right):
        return "give null a type, as in cast(null as int)"
    if operator == "-" and TIMESTAMP in (left, right):
        return "timestampdiff(second, a, b) gives the time between two timestamps"
    return "cast the text to a number, as in cast(x as double)" if STRING in (left, right) else None


def _concatenation(left: Checked, right: Checked) -> Checked:
    if not (CONCATENATED.accepts(left.type) and CONCATENATED.accepts(right.type)):
        raise Refusal(f"{left.type} || {right.type} has no meaning", "join texts or arrays")
    return joined(f"concat({left.sql}, {right.sql})", concatenated((left, right)), left, right)


def _time_arithmetic(operator: str, left: Checked, right: Checked) -> Checked:
    if operator == "+" and (left.type in (INTERVAL, INT)):
        left, right = right, left
    if left.type == TIMESTAMP and right.type == INTERVAL:
        function = "try_add" if operator == "+" else "try_subtract"
        return joined(f"{function}({left.sql}, {right.sql})", TIMESTAMP, left, right)
    if left.type == DATE and right.type == INT:
        function = "date_add" if operator == "+" else "date_sub"
        return joined(moved_days(function).format(left.sql, right.sql), DATE, left, right)
    if left.type == DATE and right.type == INTERVAL:
        return _moved_date(1 if operator == "+" else -1, left, right)
    if left.type == DATE and right.type == DATE:
        raise Refusal("date - date has no meaning", "datediff(a, b) gives the days between two dates")
    raise Refusal(f"{left.type} {operator} {right.type} has no meaning", "an interval moves a timestamp or a date")


def _moved_date(sign: int, date: Checked, interval: Checked) -> Checked:
    months, microseconds = interval_parts(interval)
    days, rest = divmod(microseconds, MICROSECONDS_PER_DAY)
    if rest:
        raise Refusal("a date moves by whole days, months or years", "cast it to a timestamp first")
    function, amount = ("add_months", months) if months else ("date_add", days)
    return joined(f"{function}({date.sql}, ({sign * amount}))", DATE, date)


def interval_of(months: int, microseconds: int) -> Checked:
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    sign = "-" if microseconds < 0 else ""
    sql = f"INTERVAL '{months}' MONTH" if months else f"INTERVAL '{sign}{seconds}.{rest:06d}' SECOND"
    return Checked(sql, INTERVAL, literal=(months, microseconds))


def interval_parts(interval: Checked) -> tuple[int, int]:
    assert isinstance(interval.literal, tuple), "an interval is always a constant"
    return interval.literal


def cast(operand: Checked, target: Type, *, attempt: bool) -> Checked:
    if not castable(operand.type, target):
        raise Refusal(f"{operand.type} cannot be cast to {target}", "cast it to string")
    if target in (DATE, TIMESTAMP):
        refuse_time_word(operand)
    attempt = attempt or (operand.type == DATE and target == TIMESTAMP)
    return joined(f"{'TRY_CAST' if attempt else 'CAST'}({operand.sql} AS {target.ddl})", target, operand)


def field(base: Checked, name: str) -> Checked:
    """`base.name` for a struct, an array of structs, or a map with text keys."""
    type_ = base.type
    if type_.name == "map" and type_.items[0] == STRING:
        return joined(f"{base.sql}[{quoted(name)}]", type_.items[1], base)
    struct = type_.items[0] if type_.name == "array" else type_
    if struct.name != "struct":
        raise Refusal(f"{type_} has no fields", "a dot follows a struct or a map with text keys")
    for known, found in struct.fields:
        if known.lower() == name.lower():
            return joined(f"{base.sql}[{quoted(known)}]", array_of(found) if struct is not type_ else found, base)
    known_names = ", ".join(known for known, _ in struct.fields)
    raise Refusal(f"there is no field {name}", f"the fields are {known_names}", code="unknown_column")


def subscript(base: Checked, index: Checked) -> Checked:
    type_ = base.type
    if type_.name == "struct" and isinstance(index.literal, str):
        return field(base, index.literal)
    if type_.name == "array":
        expected, found, fits = "an int or long", type_.items[0], whole(index.type)
    elif type_.name == "map":
        expected, found = str(type_.items[0]), type_.items[1]
        fits = index.type != NULL and common_type(type_.items[0], index.type) == type_.items[0]
    else:
        raise Refusal(f"{type_} has no items", "square brackets follow an array or a map")
    if not fits:
        raise Refusal(f"in square brackets stands {expected}, not {index.type}")
    return joined(f"{base.sql}[{index.sql}]", found, base, index)
