"""Every aggregate a window or running aggregate may use, as data. How Spark computes them is the data plane's part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemark.compiler.graph.expression.type_rules import atomic, orderable
from tidemark.schema import BINARY, BOOLEAN, DOUBLE, LONG, Type, array_of, decimal, struct_of

MAX_ITEMS = 1000
Value = int | float


@dataclass(frozen=True)
class Rule:
    """What an argument must be, in words and as a test of its type."""

    label: str
    accepts: Callable[[Type], bool]


@dataclass(frozen=True)
class Constant:
    """A literal after the arguments; left out, it is `default`, and needed when there is none."""

    label: str
    allows: Callable[[Value], bool]
    default: Value | None = None


@dataclass(frozen=True)
class Aggregate:
    """`optional` is how many of the arguments may be left out. `error_bound` is what a sketch promises."""

    name: str
    arguments: tuple[Rule, ...]
    result: Callable[[Sequence[Type]], Type]
    doc: str
    example: str
    parameters: tuple[Constant, ...] = ()
    optional: int = 0
    error_bound: str | None = None


NUMBER = Rule("a number", lambda type_: type_.numeric)
CONDITION = Rule("a condition", lambda type_: type_ == BOOLEAN)
ANY = Rule("a value", lambda type_: True)
ORDERABLE = Rule("a value that can be compared", orderable)
SIMPLE = Rule("a simple value", lambda type_: atomic(type_))
COUNTABLE = Rule("text, a number, a boolean, a date or a timestamp", lambda type_: atomic(type_) and type_ != BINARY)
SHARE = Constant("a constant from 0 to 1", lambda value: 0 <= value <= 1)
LIMIT = Constant(
    f"a constant from 1 to {MAX_ITEMS}", lambda value: isinstance(value, int) and 1 <= value <= MAX_ITEMS, MAX_ITEMS
)
ITEMS = Constant(f"a constant from 1 to {MAX_ITEMS}", LIMIT.allows)


def _long(types: Sequence[Type]) -> Type:
    return LONG


def _double(types: Sequence[Type]) -> Type:
    return DOUBLE


def _first(types: Sequence[Type]) -> Type:
    return types[0]


def _array(types: Sequence[Type]) -> Type:
    return array_of(types[0])


def _sum(types: Sequence[Type]) -> Type:
    type_ = types[0]
    if type_.name == "decimal":
        return decimal(min(38, type_.precision + 10), type_.scale)
    return LONG if type_.name in ("int", "long") else DOUBLE


def _average(types: Sequence[Type]) -> Type:
    type_ = types[0]
    if type_.name == "decimal":
        return decimal(min(38, type_.precision + 4), min(38, type_.scale + 4))
    return DOUBLE


def _ranking(types: Sequence[Type]) -> Type:
    return array_of(struct_of(("item", types[0]), ("count", LONG)))


AGGREGATES: tuple[Aggregate, ...] = (
    Aggregate("count", (ANY,), _long, "number of rows, or of rows where x is not null", "count()", optional=1),
    Aggregate("count_if", (CONDITION,), _long, "number of rows for which the condition holds", "count_if(amount > 10)"),
    Aggregate("sum", (NUMBER,), _sum, "sum", "sum(amount)"),
    Aggregate("avg", (NUMBER,), _average, "average", "avg(amount)"),
    Aggregate("min", (ORDERABLE,), _first, "smallest value", "min(amount)"),
    Aggregate("max", (ORDERABLE,), _first, "largest value", "max(amount)"),
    Aggregate("first", (ANY,), _first, "value of the earliest event", "first(name)"),
    Aggregate("last", (ANY,), _first, "value of the latest event", "last(name)"),
    Aggregate("stddev", (NUMBER,), _double, "standard deviation of a sample", "stddev(amount)"),
    Aggregate("variance", (NUMBER,), _double, "variance of a sample", "variance(amount)"),
    Aggregate("count_distinct", (ORDERABLE,), _long, "number of different values, exact", "count_distinct(name)"),
    Aggregate("collect_list", (ANY,), _array, "values in order of event time", "collect_list(name, 10)", (LIMIT,)),
    Aggregate("collect_set", (ORDERABLE,), _array, "different values", "collect_set(name, 10)", (LIMIT,)),
    Aggregate("max_by", (ANY, ORDERABLE), _first, "x of the row with the largest y", "max_by(name, amount)"),
    Aggregate("min_by", (ANY, ORDERABLE), _first, "x of the row with the smallest y", "min_by(name, amount)"),
    Aggregate(
        "approx_distinct",
        (SIMPLE,),
        _long,
        "number of different values, by HyperLogLog",
        "approx_distinct(name)",
        error_bound="relative standard error of 2 %",
    ),
    Aggregate(
        "approx_percentile",
        (NUMBER,),
        _double,
        "the value below which the share p of the values lies, by sketch",
        "approx_percentile(amount, 0.99)",
        (SHARE,),
        error_bound="rank error of at most 1 %",
    ),
    Aggregate(
        "approx_top_k",
        (COUNTABLE,),
        _ranking,
        "the k most frequent values with their counts, by sketch",
        "approx_top_k(name, 10)",
        (ITEMS,),
        error_bound="exact up to 10000 different values; beyond, a count is off by at most 0.03 % of the rows",
    ),
)
AGGREGATES_BY_NAME = {aggregate.name: aggregate for aggregate in AGGREGATES}
LATER_AGGREGATES = frozenset(("count_min",))
