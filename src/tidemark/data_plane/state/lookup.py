"""Keyed state as of a committed epoch: what a window, an aggregate or a dedup holds for a key.

Values are those that the operator would put out now. Sketches and collections are kept in forms of Spark's own and
are named, not shown.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import AggregatePlan, ExecutionPlan, QueryPlan, SessionWindow, WindowPlan
from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.data_plane.query.lowering.columns import quoted
from tidemark.data_plane.query.lowering.window import WINDOW_END
from tidemark.data_plane.query.stateful import stateful_operators
from tidemark.data_plane.state.buffers import finished_values
from tidemark.errors import UsageError
from tidemark.generations import Generations
from tidemark.protocol.messages import RunSpec
from tidemark.schema import parse_type

_MOST_ROWS = 1000
_SESSION = "session_window"


def look_up(spec: RunSpec, spark: SparkSession, operator_id: str, key: str) -> dict[str, Any]:
    """The entries of one key, with the epoch they are of and its age. Raises UsageError when it cannot be asked."""
    operator = _operator(spec.plan, operator_id)
    wanted = _key_values(operator, key)
    query = next(query for query in spec.plan.queries if operator_id in query.operators)
    checkpoint = Checkpoint(Generations(Path(spec.state)).current / query.id, query.sources)
    epoch = checkpoint.last_committed()
    if epoch is None:
        raise UsageError(f"{operator_id} has no committed epoch yet", hint="ask again later", step=operator_id)
    rows = _rows(spark, checkpoint, spec.plan, query, operator, epoch, wanted)
    return {
        "operator": operator_id,
        "key": wanted,
        "query": query.id,
        "epoch": epoch + checkpoint.shift(),
        "age_ms": _age_ms(checkpoint, epoch),
        "entries": [_entry(row, operator) for row in rows],
    }


def _operator(plan: ExecutionPlan, operator_id: str) -> WindowPlan | AggregatePlan:
    operator = plan.operators.get(operator_id)
    if isinstance(operator, WindowPlan | AggregatePlan):
        return operator
    known = [id_ for id_, each in plan.operators.items() if isinstance(each, WindowPlan | AggregatePlan)]
    raise UsageError(
        f"{operator_id} keeps no state by key",
        hint=f"those that do: {', '.join(known)}" if known else "this job has no window and no aggregate",
        step=operator_id,
    )


def _key_values(operator: WindowPlan | AggregatePlan, text: str) -> dict[str, Any]:
    """JSON of the key columns, or the bare text of a single one."""
    names = [item.name for item in operator.key]
    given = _parsed(text)
    if not isinstance(given, dict) and len(names) == 1:
        given = {names[0]: text if operator.key[0].expression.type == "string" else given}
    if isinstance(given, dict) and set(given) == set(names):
        return given
    shape = json.dumps(dict.fromkeys(names, "…"), ensure_ascii=False)
    raise UsageError(f"the key of {operator.id} is {shape}", hint="give all its columns", step=operator.id)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _rows(
    spark: SparkSession,
    checkpoint: Checkpoint,
    plan: ExecutionPlan,
    query: QueryPlan,
    operator: WindowPlan | AggregatePlan,
    epoch: int,
    wanted: dict[str, Any],
) -> list[Row]:
    number = stateful_operators(plan, query).index(operator.id)
    reader = spark.read.format("statestore").option("operatorId", number).option("batchId", epoch)
    state: DataFrame = reader.load(str(checkpoint.folder))
    for item in operator.key:
        literal = F.lit(json.dumps({"v": wanted[item.name]}))
        ddl = parse_type(item.expression.type).ddl
        value = F.from_json(literal, f"v {ddl}").getField("v")
        state = state.where(F.col(f"key.{quoted(item.name)}").eqNullSafe(value))
    return state.limit(_MOST_ROWS).collect()


def _entry(row: Row, operator: WindowPlan | AggregatePlan) -> dict[str, Any]:
    values, hidden = finished_values(operator, _buffers(row["value"]))
    shown = {name: _plain(value) for name, value in values.items()}
    return {**_bounds(operator, row["key"], row["value"]), "values": shown, **({"not_shown": hidden} if hidden else {})}


def _buffers(value: Row) -> list[Any]:
    """What the aggregates keep: of a session the value also repeats its key."""
    names = list(value.asDict())
    begin = names.index(_SESSION) + 1 if _SESSION in names else 0
    return list(value)[begin:]


def _bounds(operator: WindowPlan | AggregatePlan, key: Row, value: Row) -> dict[str, str]:
    if not isinstance(operator, WindowPlan):
        return {}
    if isinstance(operator.window, SessionWindow):
        start, end = value[_SESSION]["start"], value[_SESSION]["end"]
    else:
        end = key[WINDOW_END]
        start = end - timedelta(milliseconds=operator.window.size_ms)
    return {"window_start": _plain(start), "window_end": _plain(end)}


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Row):
        return {name: _plain(item) for name, item in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _age_ms(checkpoint: Checkpoint, epoch: int) -> int:
    committed = (checkpoint.folder / "commits" / str(epoch)).stat().st_mtime
    return max(0, round((datetime.now(UTC).timestamp() - committed) * 1000))
