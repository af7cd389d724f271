"""Late rows: those whose window, or dedup horizon, an earlier epoch has closed for good.

Spark drops them inside its operators without a trace. They are found by the earliest end among an epoch's
arrivals, which is counted in the same pass; only when that lies behind the watermark is the epoch read again.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import DedupPlan, ExecutionPlan, QueryPlan, WindowPlan
from tidemark.data_plane.epoch.accounting import Observed, Split
from tidemark.data_plane.query.frames import EpochFrames
from tidemark.data_plane.query.lowering import dedup, window
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, payload, tally


def operators_with_late_rows(
    plan: ExecutionPlan, query: QueryPlan, observed: Observed, watermark_ms: int
) -> list[DedupPlan | WindowPlan]:
    """The operators of this query that were given rows behind the watermark of the previous epoch."""
    found: list[DedupPlan | WindowPlan] = []
    for node in query.accounts:
        operator = plan.operators.get(node)
        if isinstance(operator, DedupPlan | WindowPlan):
            _, earliest_end = observed.get(f"arrived:{node}", [0, None])
            if earliest_end is not None and earliest_end <= watermark_ms * 1000:
                found.append(operator)
    return found


class Arrivals:
    """The rows that reached a stateful operator in this epoch, with the watermark that judged them."""

    def __init__(self, operator: DedupPlan | WindowPlan, frames: EpochFrames, watermark_ms: int) -> None:
        self._operator = operator
        self._watermark_ms = watermark_ms
        given = frames.input(operator)
        if isinstance(operator, WindowPlan):
            self._rows, end = window.assign(operator, given), F.col(window.END)
        else:
            self._rows, end = dedup.with_horizon(operator, given), F.col(dedup.HORIZON)
        self._late = end <= watermark_ms * 1000
        self._both_sides = (tally(self._late).alias("late"), tally(~self._late).alias("passed"))

    def split(self) -> Split:
        """Counts both sides in one pass over the epoch."""
        counted = self._rows.agg(*self._both_sides).first()
        assert counted is not None
        return Split(counted["late"], counted["passed"])

    def late(self, counted: Observation) -> DataFrame:
        """The late rows. Both sides are counted as `late` and `passed` in the pass that reads them."""
        return self._late_columns(self._rows.observe(counted, *self._both_sides).where(self._late))

    def _late_columns(self, rows: DataFrame) -> DataFrame:
        """What the `.late` port carries."""
        watermark = F.timestamp_millis(F.lit(self._watermark_ms))
        lateness = F.lit(self._watermark_ms) - F.floor(F.unix_micros("_event_time") / 1000)
        columns = [
            *self._payload(),
            *[F.col(name) for name in SYSTEM_NAMES],
            *self._window_bounds(),
            watermark.alias("watermark"),
            lateness.cast("bigint").alias("lateness_ms"),
        ]
        return rows.select(*columns)

    def _payload(self) -> list[Column]:
        if isinstance(self._operator, DedupPlan):
            return payload(self._operator.output)
        hidden = {window.WINDOW, window.END, *SYSTEM_NAMES}
        return [F.col(f"`{name}`") for name in self._rows.columns if name not in hidden]

    def _window_bounds(self) -> list[Column]:
        if isinstance(self._operator, DedupPlan):
            return []
        bounds = F.col(window.WINDOW)
        return [bounds.getField("start").alias("window_start"), bounds.getField("end").alias("window_end")]
