"""The watermark of a query, without Spark: against an independent account, and its own promises."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from support.oracle import Clock, Event

from tidemark.compiler.plan.plan import SourcePlan, WatermarkPolicy
from tidemark.data_plane.epoch.watermark import END_OF_TIME, QueryWatermark

PARTITIONS = 3
DELAY, IDLE = 5_000, 30_000

Step = dict[int, int] | int  # the newest times by partition, or milliseconds waited
steps = st.lists(
    st.one_of(
        st.dictionaries(st.integers(0, PARTITIONS - 1), st.integers(10_000, 10_000_000), max_size=3),
        st.integers(0, 40_000),
    ),
    max_size=30,
)


def source(name: str, delay: int = DELAY, idle: int = IDLE) -> SourcePlan:
    policy = WatermarkPolicy(delay_ms=delay, idle_timeout_ms=idle, max_future_ms=3_600_000)
    return SourcePlan(id=name, connector="files", options={}, format="jsonl", columns=(), watermark=policy)


def apply(watermark: QueryWatermark, step: Step, name: str = "s") -> None:
    if isinstance(step, dict):
        watermark.saw(name, {partition: time * 1000 for partition, time in step.items()})
    else:
        watermark.waited(step * 1000)
    watermark.advance()


@given(steps)
def test_one_source_moves_as_an_independent_clock(sequence: list[Step]) -> None:
    watermark, clock = QueryWatermark.of([(source("s"), PARTITIONS)]), Clock(PARTITIONS, DELAY, IDLE)
    for step in sequence:
        apply(watermark, step)
        if isinstance(step, dict):
            clock.saw(Event("e", time, "k", 0.0, partition) for partition, time in step.items())
        else:
            clock.waited(step)
        assert (watermark.value or 0) == clock.mark * 1000


@given(steps, steps)
def test_it_never_moves_back_and_survives_being_saved(first: list[Step], second: list[Step]) -> None:
    watermark = QueryWatermark.of([(source("s"), PARTITIONS), (source("t", 0, 1), PARTITIONS)])
    highest = 0
    for name, sequence in (("s", first), ("t", second)):
        for step in sequence:
            apply(watermark, step, name)
            assert (watermark.value or 0) >= highest
            highest = watermark.value or 0
    restored = QueryWatermark.of([(source("s"), PARTITIONS), (source("t", 0, 1), PARTITIONS)])
    restored.restore(json.loads(json.dumps(watermark.to_json())))
    assert restored == watermark


def test_a_source_that_is_idle_leaves_the_minimum_and_one_without_events_holds_it() -> None:
    watermark = QueryWatermark.of([(source("fast", idle=60_000), 1), (source("slow", idle=10_000), 1)])
    watermark.saw("fast", {0: 100_000_000})
    assert watermark.advance() is None
    watermark.waited(9_999_000)
    assert watermark.advance() is None
    watermark.waited(1_000)
    assert watermark.advance() == 95_000_000


def test_a_start_forgets_idle_time_but_not_the_watermark() -> None:
    watermark = QueryWatermark.of([(source("s"), 2)])
    watermark.saw("s", {0: 50_000_000})
    watermark.waited(29_000_000)
    watermark.started()
    watermark.waited(29_000_000)
    assert watermark.advance() is None
    watermark.waited(1_000_000)
    # Both partitions are idle now: the newest event, moved on by the 30 seconds since the start, less the delay.
    assert watermark.advance() == 75_000_000


def test_trying_a_change_changes_nothing() -> None:
    watermark = QueryWatermark.of([(source("s"), 1)])
    watermark.saw("s", {0: 50_000_000})
    watermark.advance()
    before = watermark.to_json()
    assert watermark.would_move(lambda trial: trial.waited(30_000_000))
    assert not watermark.would_move(lambda trial: trial.waited(1_000))
    assert watermark.to_json() == before


def test_a_replay_does_not_fall_behind_its_log_and_a_drain_goes_to_the_end() -> None:
    watermark = QueryWatermark.of([(source("s"), 1)])
    watermark.at_least(80_000_000)
    watermark.saw("s", {0: 50_000_000})
    assert watermark.advance() == 80_000_000
    watermark.drain()
    assert watermark.advance() == END_OF_TIME


def test_a_partition_beside_busy_ones_falls_idle_with_the_epochs_that_pass_it_by() -> None:
    watermark = QueryWatermark.of([(source("s"), 2), (source("t"), 1)])
    watermark.read({"s": {0: 50_000_000, 1: 1_000_000}, "t": {0: 50_000_000}}, {})
    for _ in range(2):
        watermark.read({"s": {0: 60_000_000}, "t": {}}, {"s": 16_000_000})
    assert watermark.advance() == 50_000_000 - DELAY * 1000


def test_an_epoch_without_events_does_not_move_time_by_itself() -> None:
    watermark = QueryWatermark.of([(source("s"), 1)])
    watermark.read({"s": {0: 50_000_000}}, {})
    before = watermark.advance()
    for _ in range(10):
        watermark.read({"s": {}}, {"s": 60_000_000})
    assert watermark.advance() == before
