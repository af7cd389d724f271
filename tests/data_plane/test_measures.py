"""Which stage runs which operator, and what an epoch's progress says of it."""

from __future__ import annotations

from typing import Any

import pytest
from faults import workload
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.plan import QueryPlan
from tidemark.connectors.connector import PartitionOffsets
from tidemark.data_plane.query.stateful import stage_depths, stateful_operators
from tidemark.data_plane.report.measures import StateSize, busy_shares, measure

PLAN = compile_job(workload.JOB).plan
PER_MINUTE, VISITS = (next(query for query in PLAN.queries if query.id == id_) for id_ in workload.QUERIES)


@pytest.mark.parametrize(("query", "expected"), [(PER_MINUTE, ("per_minute", "once")), (VISITS, ("visits",))])
def test_state_is_numbered_from_the_last_operator_upwards(query: QueryPlan, expected: tuple[str, ...]) -> None:
    assert stateful_operators(PLAN, query) == expected


def test_an_operator_is_as_deep_as_the_shuffles_behind_it() -> None:
    depths = stage_depths(PLAN, PER_MINUTE)
    assert depths == {"per_minute": 0, "activity": 1, "bought": 1, "once": 1, "clicks": 1, "paid": 2, "orders": 2}


def test_busy_is_the_share_of_the_slots_and_fused_operators_share_it() -> None:
    busy = busy_shares(PLAN, VISITS, [[1.0, 0.5], [0.6, 0.0]], slots=2, seconds=2.0)
    assert busy == {"orders": 0.4, "paid": 0.4, "visits": 0.125}


def test_time_of_other_jobs_counts_for_all() -> None:
    assert busy_shares(PLAN, VISITS, [[1.0]], slots=1, seconds=1.0) == {"orders": 0.5, "paid": 0.5, "visits": 0.5}


def test_busy_is_never_more_than_all() -> None:
    assert set(busy_shares(PLAN, VISITS, [[9.0, 9.0]], slots=1, seconds=1.0).values()) == {1.0}


class Counting:
    """A source whose offsets are plain numbers."""

    partitions = 1

    def unread(self, end: str | None, latest: str | None) -> int | None:
        return int(latest) - int(end) if end and latest else None

    def offsets(self, end: str | None, latest: str | None) -> dict[int, PartitionOffsets]:
        return {0: PartitionOffsets(int(end or 0), int(latest or 0), self.unread(end, latest))}

    def stream(self, spark: Any) -> Any: ...

    def reread(self, spark: Any, scan: Any) -> Any: ...


def progress(**changes: Any) -> StreamingQueryProgress:
    state = {
        "operatorName": "stateStoreSave",
        "numRowsTotal": 0,
        "numRowsUpdated": 0,
        "allUpdatesTimeMs": 0,
        "numRowsRemoved": 0,
        "allRemovalsTimeMs": 0,
        "memoryUsedBytes": 0,
        "commitTimeMs": 0,
        "numRowsDroppedByWatermark": 0,
        "numShufflePartitions": 2,
        "numStateStoreInstances": 2,
        "customMetrics": {},
    }
    rates = {"numInputRows": 0, "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0}
    sources = [
        {"description": "d", "startOffset": 0, "endOffset": end, "latestOffset": latest, "metrics": {}, **rates}
        for end, latest in ((30, 50), (7, 7))
    ]
    content = {
        "id": "0731c0b7-716d-4989-a3c9-908ad76817dc",
        "runId": "1f547dfa-d8b8-4cbb-9c8f-6c1c160a0e67",
        "name": "per_minute",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": 4,
        "batchDuration": 90,
        "durationMs": {"walCommit": 3, "commitOffsets": 4},
        "eventTime": {},
        "stateOperators": [
            {**state, "numRowsTotal": 11, "memoryUsedBytes": 100, "commitTimeMs": 5},
            {**state, "numRowsTotal": 22, "memoryUsedBytes": 200, "commitTimeMs": 9},
        ],
        "sources": sources,
        "sink": {"description": "s", "numOutputRows": -1, "metrics": {}},
        "observedMetrics": {},
        **rates,
        **changes,
    }
    return StreamingQueryProgress.fromJson(content)


def test_an_epoch_tells_state_offsets_and_backlog() -> None:
    sources = {"orders": Counting(), "clicks": Counting()}
    measured = measure(PLAN, PER_MINUTE, progress(), sources, ["clicks", "orders"], busy={})
    assert measured.state == {"per_minute": StateSize(11, 100), "once": StateSize(22, 200)}
    assert measured.offsets == {"clicks": {0: PartitionOffsets(30, 50, 20)}, "orders": {0: PartitionOffsets(7, 7, 0)}}
    assert (measured.lag, measured.checkpoint_ms, measured.epoch) == (20, 16, 4)


def test_sources_without_names_are_known_by_their_places() -> None:
    sources = {"orders": Counting(), "clicks": Counting()}
    measured = measure(PLAN, PER_MINUTE, progress(), sources, ["0", "1"], busy={})
    assert set(measured.offsets) == {"orders", "clicks"}
    assert measured.offsets[PER_MINUTE.sources[0]] == {0: PartitionOffsets(30, 50, 20)}
