"""Aggregates as Spark columns. What depends on order orders by (_event_time, _event_id), so arrival does not matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import Aggregate

# Relative standard deviation of HyperLogLog++ and the size of a KLL sketch; their bounds are in the reference docs.
DISTINCT_RSD = 0.02
KLL_SIZE = 1000

# What looks at the order of events, and so at their ids.
ORDERED = frozenset({"first", "last", "collect_list", "max_by", "min_by"})

Arguments = Sequence[Column]
Parameters = Sequence[float | int]


def aggregate_column(aggregate: Aggregate) -> Column:
    arguments = [F.expr(argument.sql) for argument in aggregate.arguments]
    return AGGREGATES[aggregate.function](arguments, aggregate.parameters).alias(aggregate.name)


def _order() -> Column:
    return F.struct("_event_time", "_event_id")


def _latest_first() -> tuple[Column, Column]:
    """The reverse of `_order` for use inside max: later times and larger ids are smaller."""
    reversed_id = F.concat(F.translate(F.hex("_event_id"), "0123456789ABCDEF", "FEDCBA9876543210"), F.lit("G"))
    return -F.unix_micros("_event_time"), reversed_id


def _count(arguments: Arguments, _: Parameters) -> Column:
    return F.count(arguments[0] if arguments else F.lit(1))


def _min_by(arguments: Arguments, _: Parameters) -> Column:
    value, by = arguments
    return F.min_by(value, F.when(by.isNotNull(), F.struct(by.alias("by"), _order().alias("order"))))


def _max_by(arguments: Arguments, _: Parameters) -> Column:
    """Of equal maxima the earliest event wins, as with min_by."""
    value, by = arguments
    time, identity = _latest_first()
    return F.max_by(value, F.when(by.isNotNull(), F.struct(by.alias("by"), time.alias("time"), identity.alias("id"))))


def _collect_list(arguments: Arguments, parameters: Parameters) -> Column:
    value = arguments[0]
    ordered = F.struct(F.col("_event_time"), F.col("_event_id"), value.alias("value"))
    collected = F.sort_array(F.collect_list(F.when(value.isNotNull(), ordered)))
    return F.transform(F.slice(collected, 1, int(parameters[0])), lambda item: item.getField("value"))


def _collect_set(arguments: Arguments, parameters: Parameters) -> Column:
    return F.slice(F.sort_array(F.collect_set(arguments[0])), 1, int(parameters[0]))


def _approx_percentile(arguments: Arguments, parameters: Parameters) -> Column:
    number = arguments[0].cast("double")
    sketch = F.kll_sketch_agg_double(number, KLL_SIZE)
    return F.when(F.count(number) > 0, F.kll_sketch_get_quantile_double(sketch, F.lit(float(parameters[0]))))


def _approx_top_k(arguments: Arguments, parameters: Parameters) -> Column:
    """Spark counts null as a value; one more is asked for, so that leaving it out still gives k."""
    k = int(parameters[0])
    found = F.call_function("approx_top_k", arguments[0], F.lit(k + 1))
    return F.slice(F.filter(found, lambda entry: entry.getField("item").isNotNull()), 1, k)


AGGREGATES: dict[str, Callable[[Arguments, Parameters], Column]] = {
    "count": _count,
    "count_if": lambda arguments, _: F.count_if(arguments[0]),
    "sum": lambda arguments, _: F.sum(arguments[0]),
    "avg": lambda arguments, _: F.avg(arguments[0]),
    "min": lambda arguments, _: F.min(arguments[0]),
    "max": lambda arguments, _: F.max(arguments[0]),
    "first": lambda arguments, _: F.min_by(arguments[0], _order()),
    "last": lambda arguments, _: F.max_by(arguments[0], _order()),
    "stddev": lambda arguments, _: F.stddev_samp(arguments[0]),
    "variance": lambda arguments, _: F.var_samp(arguments[0]),
    "count_distinct": lambda arguments, _: F.size(F.collect_set(arguments[0])).cast("bigint"),
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "max_by": _max_by,
    "min_by": _min_by,
    "approx_distinct": lambda arguments, _: F.approx_count_distinct(arguments[0], DISTINCT_RSD),
    "approx_percentile": _approx_percentile,
    "approx_top_k": _approx_top_k,
}
