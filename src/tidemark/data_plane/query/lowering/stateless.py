"""Operators that look at one row at a time: filter, map, flat_map, branch, union."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import BranchPlan, FilterPlan, FlatMapPlan, MapPlan, UnionPlan
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, payload, quoted

KEEP = "__tm_keep"


def mark_filtered(plan: FilterPlan, frame: DataFrame) -> DataFrame:
    """Adds KEEP: whether the row passes. A null condition does not."""
    return frame.withColumn(KEEP, F.coalesce(F.expr(plan.where.sql), F.lit(False)))


def drop_filtered(frame: DataFrame) -> DataFrame:
    return frame.where(KEEP).drop(KEEP)


def lower_map(plan: MapPlan, frame: DataFrame) -> DataFrame:
    selected = [F.expr(item.expression.sql).alias(item.name) for item in plan.select]
    return frame.select(*selected, *SYSTEM_NAMES)


def lower_flat_map(plan: FlatMapPlan, frame: DataFrame) -> DataFrame:
    """One row per element; an empty or null array gives none. The event's identity stays the event's."""
    others = [quoted(column.name) for column in plan.output if column.name != plan.name]
    exploded = frame.select(*others, *SYSTEM_NAMES, F.explode(F.expr(plan.each.sql)).alias(plan.name))
    return exploded.select(*payload(plan.output), *SYSTEM_NAMES)


def port_column(plan: BranchPlan) -> str:
    return f"__tm_port_{plan.id}"


def mark_ports(plan: BranchPlan, frame: DataFrame) -> DataFrame:
    """Adds the name of the one port each row leaves by."""
    port = F.coalesce(*[F.when(F.expr(item.expression.sql), F.lit(item.name)) for item in plan.when], F.lit("main"))
    return frame.withColumn(port_column(plan), port)


def take_port(plan: BranchPlan, frame: DataFrame, port: str) -> DataFrame:
    return frame.where(F.col(port_column(plan)) == port).drop(port_column(plan))


def lower_union(plan: UnionPlan, frames: list[DataFrame]) -> DataFrame:
    aligned = [frame.select(*payload(plan.output), *SYSTEM_NAMES) for frame in frames]
    return reduce(DataFrame.unionByName, aligned)
