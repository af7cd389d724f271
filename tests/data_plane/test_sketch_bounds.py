"""The error bounds that the reference states for sketches hold, on data made to be awkward."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import Aggregate, Expression
from tidemark.data_plane.query.lowering.aggregates import aggregate_column

ROWS = 40_000


def sketch(frame: DataFrame, function: str, *parameters: float) -> Any:
    """One sketch over the column x, in eight partitions whose partial results are merged."""
    argument = Expression(sql="x", type="double")
    aggregate = Aggregate(name="y", function=function, arguments=(argument,), parameters=parameters, type="double")
    row = frame.repartition(8).agg(aggregate_column(aggregate)).first()
    assert row is not None
    return row["y"]


@pytest.mark.parametrize("distinct", [1, 40, 2_000, 40_000])
def test_approx_distinct_is_within_six_percent(distinct: int, spark: SparkSession) -> None:
    """Three times the relative standard deviation of 2 %."""
    frame = spark.range(ROWS).select((F.col("id") % distinct).cast("string").alias("x"))
    assert abs(sketch(frame, "approx_distinct") - distinct) <= 0.06 * distinct


@pytest.mark.parametrize("p", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_approx_percentile_is_within_one_percent_of_rank(p: float, spark: SparkSession) -> None:
    chance = random.Random(5)
    values = [chance.lognormvariate(0, 2) for _ in range(ROWS - 5_000)] + [7.0] * 5_000
    frame = spark.createDataFrame([(value,) for value in values], "x double")
    found, ordered = sketch(frame, "approx_percentile", p), sorted(values)
    low, high = bisect_left(ordered, found) / ROWS, bisect_right(ordered, found) / ROWS
    assert low - 0.01 <= p <= high + 0.01


def test_approx_percentile_of_nothing_is_null(spark: SparkSession) -> None:
    nothing = spark.range(3).select(F.lit(None).cast("double").alias("x"))
    assert sketch(nothing, "approx_percentile", 0.5) is None
    assert sketch(nothing.limit(0), "approx_percentile", 0.5) is None
    assert sketch(nothing, "approx_distinct") == 0


@pytest.mark.parametrize(("cold", "off_by"), [(5_000, 0.0), (50_000, 0.0003)])
def test_approx_top_k_counts_the_frequent_ones(cold: int, off_by: float, spark: SparkSession) -> None:
    """Exact up to ten thousand different values; beyond, off by at most 0.03 % of the rows."""
    chance = random.Random(9)
    values = [f"hot{n}" for n in range(5) for _ in range(1_000 * (n + 1))]
    values += [f"cold{chance.randrange(cold)}" for _ in range(60_000)]
    frame = spark.createDataFrame([(value,) for value in values], "x string")
    exact = Counter(values)
    found = [(row["item"], row["count"]) for row in sketch(frame, "approx_top_k", 5)]
    assert [item for item, _ in found] == ["hot4", "hot3", "hot2", "hot1", "hot0"]
    assert all(abs(count - exact[item]) <= off_by * len(values) for item, count in found)
