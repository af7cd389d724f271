"""Which types go together, and what comes out: Spark's rules with ANSI mode off and precision loss allowed.

Stricter than Spark in one way: text and numbers, dates and timestamps are never turned into each other unless a
cast says so.
"""

from __future__ import annotations

from tidemark.schema import DATE, DOUBLE, LONG, NULL, STRING, TIMESTAMP, Type, array_of, decimal, map_of, struct_of

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6
INTERVAL = Type("interval")
_PRECEDENCE = ("int", "long", "float", "double")
_WHOLE_DIGITS = {"int": 10, "long": 20}


def whole(type_: Type) -> bool:
    return type_.name in _WHOLE_DIGITS


def atomic(type_: Type) -> bool:
    return type_.name not in ("array", "map", "struct", "null", "interval")


def contains(type_: Type, name: str) -> bool:
    inner = (*type_.items, *(field for _, field in type_.fields))
    return type_.name == name or any(contains(item, name) for item in inner)


def orderable(type_: Type) -> bool:
    """Whether two values can be compared; maps cannot."""
    return not contains(type_, "map") and type_ != INTERVAL


def common_type(left: Type, right: Type) -> Type | None:
    """The type that holds both, or None."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if left.numeric and right.numeric:
        return _common_number(left, right)
    if left.name == right.name and left.name in ("array", "map", "struct"):
        return _common_compound(left, right)
    return None


def common_type_of(types: tuple[Type, ...]) -> Type | None:
    found: Type | None = NULL
    for type_ in types:
        found = common_type(found, type_) if found is not None else None
    return found


def _common_number(left: Type, right: Type) -> Type:
    if "decimal" not in (left.name, right.name):
        return max(left, right, key=lambda type_: _PRECEDENCE.index(type_.name))
    if not (_exact(left) and _exact(right)):
        return DOUBLE
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    excess = max(0, precision - MAX_PRECISION)
    return decimal(precision - excess, max(0, scale - excess))


def _common_compound(left: Type, right: Type) -> Type | None:
    inner_left = left.items or tuple(type_ for _, type_ in left.fields)
    inner_right = right.items or tuple(type_ for _, type_ in right.fields)
    if [name.lower() for name, _ in left.fields] != [name.lower() for name, _ in right.fields]:
        return None
    inner = tuple(common_type(a, b) for a, b in zip(inner_left, inner_right, strict=True))
    found = tuple(type_ for type_ in inner if type_ is not None)
    if len(found) < len(inner):
        return None
    if left.name == "array":
        return array_of(found[0])
    if left.name == "map":
        return map_of(found[0], found[1])
    return struct_of(*zip((name for name, _ in left.fields), found, strict=True))


def arithmetic(operator: str, left: Type, right: Type, literals: tuple[object, object] = (None, None)) -> Type | None:
    """The type of `left operator right` for numbers; a whole literal beside a decimal counts its own digits only."""
    if not (left.numeric and right.numeric):
        return None
    if operator == "DIV":
        return LONG if _exact(left) and _exact(right) else None
    if "decimal" in (left.name, right.name):
        if not (_exact(left) and _exact(right)):
            return DOUBLE
        return _decimal_arithmetic(operator, as_decimal(left, literals[0]), as_decimal(right, literals[1]))
    return DOUBLE if operator == "/" else _common_number(left, right)


def as_decimal(type_: Type, literal: object = None) -> Type:
    if type_.name == "decimal":
        return type_
    return decimal(len(str(abs(literal))) if isinstance(literal, int) else _WHOLE_DIGITS[type_.name], 0)


def _exact(type_: Type) -> bool:
    return type_.name == "decimal" or whole(type_)


def _decimal_arithmetic(operator: str, a: Type, b: Type) -> Type:
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    if operator in ("+", "-"):
        return _adjusted(max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2))
    if operator == "*":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(MIN_ADJUSTED_SCALE, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    return _adjusted(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def _adjusted(precision: int, scale: int) -> Type:
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, MIN_ADJUSTED_SCALE))
    return decimal(MAX_PRECISION, kept)


def castable(source: Type, target: Type) -> bool:
    """The casts that mean something; a value that does not fit becomes null."""
    if source in (target, NULL) or target == STRING:
        return source != INTERVAL
    if source == STRING:
        return atomic(target)
    if atomic(source) and atomic(target):
        return _castable_atom(source, target)
    if source.name != target.name:
        return False
    if source.name == "struct":
        pairs = zip(source.fields, target.fields, strict=False)
        return len(source.fields) == len(target.fields) and all(castable(a, b) for (_, a), (_, b) in pairs)
    return all(castable(a, b) for a, b in zip(source.items, target.items, strict=True))


def _castable_atom(source: Type, target: Type) -> bool:
    if source.name == target.name or {source, target} == {DATE, TIMESTAMP}:
        return True
    number_like = ("boolean", "int", "long", "float", "double", "decimal")
    if source.name in number_like and target.name in number_like:
        return True
    return (source.numeric and target == TIMESTAMP) or (source == TIMESTAMP and target.numeric)
