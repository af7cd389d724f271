"""Where the examples write, what they must have written there, and how rows are compared."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.repository import ROOT
from support.session_run import Row, file_rows, table_rows

from examples import oracles

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/job.yaml"))
# These need a broker or a database.
SERVED = ("activity-counts", "fraud-detection")
PSQL = 'psql "$PG" -c "SELECT * FROM {}"'
# Of equal counts the sketch may list any: the counts are compared here, the items with the oracle.
RANKING = "top"


@dataclass(frozen=True)
class Output:
    """Where a sink of an example writes; `oracle` is the DuckDB query for its exact columns.

    `place` is a file or folder; for a served example the command of its page that shows the rows.
    """

    example: str
    sink: str
    place: str
    table: str | None = None
    oracle: str | None = None

    def expected(self) -> list[Row]:
        path = EXAMPLES / self.example / "expected" / f"{self.sink}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def written(self, folder: Path) -> list[Row]:
        rows = table_rows(folder / self.place, self.table) if self.table else file_rows(folder / self.place)
        return [{name: _nested(value) for name, value in row.items()} for row in rows]


OUTPUTS = (
    Output("trending-topics", "trends", "out/topics.db", "trends", oracles.TOTALS_PER_WINDOW),
    Output("trending-topics", "counts", "out/topics.db", "counts", oracles.COUNTS_PER_TOPIC),
    Output("user-sessions", "sessions", "out/sessions.db", "sessions", oracles.SESSIONS),
    Output("orders-per-minute", "out", "out/orders.db", "orders_per_minute", oracles.ORDERS_PER_MINUTE),
    Output("orders-per-minute", "late", "out/late", oracle=oracles.LATE_ORDERS),
    Output("orders-per-minute", "bad", "out/bad"),
    Output("bot-detection", "suspects", "out/bots.db", "suspects", oracles.BOTS),
    Output("llm-serving", "latency", "out/serving.db", "latency", oracles.LATENCY),
    Output("llm-serving", "usage", "out/serving.db", "usage", oracles.USAGE),
    Output("fraud-detection", "alerts", "python ../topics.py show alerts", oracle=oracles.ALERTS),
    Output("fraud-detection", "late", "python ../topics.py show transactions-late", oracle=oracles.LATE_PAYMENTS),
    Output("fraud-detection", "bad", "python ../topics.py show transactions-bad"),
    Output("activity-counts", "counts", PSQL.format("activity_counts"), oracle=oracles.ACTIVITIES_PER_MINUTE),
    Output("activity-counts", "late", PSQL.format("late_activities"), oracle=oracles.LATE_ACTIVITIES),
    Output(
        "activity-counts", "refused", "python ../topics.py show activities-refused", oracle=oracles.REFUSED_ACTIVITIES
    ),
    Output("activity-counts", "bad", "python ../topics.py show activities-bad"),
)


def _nested(value: object) -> object:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value


def outputs_of(name: str) -> list[Output]:
    return [output for output in OUTPUTS if output.example == name]


def assert_same_rows(found: list[Row], expected: list[Row]) -> None:
    """As a set, on the columns of the expected rows; floating sums may differ in the last digits."""
    names = list(expected[0])
    ours, theirs = (sorted(([row[name] for name in names] for row in rows), key=_order) for rows in (found, expected))
    assert len(ours) == len(theirs)
    assert [pair for pair in zip(ours, theirs, strict=True) if not _close(pair[0], pair[1])] == []


def _order(row: list[Any]) -> str:
    return json.dumps([round(value, 4) if isinstance(value, float) else value for value in row])


def _close(left: list[Any], right: list[Any]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) else a == b for a, b in zip(left, right, strict=True)
    )


def without_ranking(rows: list[Row]) -> list[Row]:
    return [row | {RANKING: [each["count"] for each in row[RANKING]]} if RANKING in row else row for row in rows]
