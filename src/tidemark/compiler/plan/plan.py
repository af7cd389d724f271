"""The execution plan: everything the data plane needs to run a job, and nothing it has to work out about the text.

Plain frozen data that round-trips through JSON. Expressions are Spark SQL rendered from checked trees, so they
are safe to hand to Spark; `$NAME` references in options are still unresolved, so a plan holds no secret.

A reference to an output is `node` (its main port) or `node.port`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(Frozen):
    name: str
    type: str


class Expression(Frozen):
    sql: str
    type: str


class Named(Frozen):
    name: str
    expression: Expression


class WatermarkPolicy(Frozen):
    delay_ms: int
    idle_timeout_ms: int
    max_future_ms: int


class SourcePlan(Frozen):
    id: str
    connector: str
    options: dict[str, Any]
    format: str
    columns: tuple[Column, ...]
    event_id: str | None = None
    key: str | None = None
    event_time: str | None = None
    watermark: WatermarkPolicy
    on_error: Literal["divert", "fail"] = "divert"
    max_error_rate: float | None = None
    endless: bool = False

    @property
    def error_limit(self) -> float | None:
        """The share of an epoch's records above which errors stop the job; None where they never do."""
        return 0.0 if self.on_error == "fail" else self.max_error_rate


class OperatorPlan(Frozen):
    """What all operators share; `output` are the payload columns of the main port."""

    id: str
    inputs: tuple[str, ...]
    output: tuple[Column, ...]


class FilterPlan(OperatorPlan):
    type: Literal["filter"] = "filter"
    where: Expression


class MapPlan(OperatorPlan):
    """`select` is the whole output, in order, whatever form the definition used."""

    type: Literal["map"] = "map"
    select: tuple[Named, ...]


class FlatMapPlan(OperatorPlan):
    type: Literal["flat_map"] = "flat_map"
    each: Expression
    name: str


class BranchPlan(OperatorPlan):
    """An event goes to the first port whose condition is true, else to main."""

    type: Literal["branch"] = "branch"
    when: tuple[Named, ...]


class UnionPlan(OperatorPlan):
    type: Literal["union"] = "union"


class DedupPlan(OperatorPlan):
    type: Literal["dedup"] = "dedup"
    by: tuple[str, ...]
    within_ms: int


class TumblingWindow(Frozen):
    kind: Literal["tumbling"] = "tumbling"
    size_ms: int
    offset_ms: int = 0


class SlidingWindow(Frozen):
    kind: Literal["sliding"] = "sliding"
    size_ms: int
    every_ms: int
    offset_ms: int = 0


class SessionWindow(Frozen):
    kind: Literal["session"] = "session"
    gap_ms: int


WindowSpec = Annotated[TumblingWindow | SlidingWindow | SessionWindow, Field(discriminator="kind")]


class Aggregate(Frozen):
    """One aggregate call: `arguments` are row expressions, `parameters` the literals after them."""

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    parameters: tuple[float | int, ...] = ()
    type: str


class WindowPlan(OperatorPlan):
    type: Literal["window"] = "window"
    key: tuple[Named, ...]
    window: WindowSpec
    aggregate: tuple[Aggregate, ...]
    emit: Literal["on_close", "on_update"] = "on_close"


class AggregatePlan(OperatorPlan):
    type: Literal["aggregate"] = "aggregate"
    key: tuple[Named, ...]
    aggregate: tuple[Aggregate, ...]


AnyOperator = Annotated[
    FilterPlan | MapPlan | FlatMapPlan | BranchPlan | UnionPlan | DedupPlan | WindowPlan | AggregatePlan,
    Field(discriminator="type"),
]


class SinkPlan(Frozen):
    """`columns` is what the sink writes: payload columns, and on side ports the system columns and the port's own.

    `refuses` says that it has a port `errors`, `keeps_refused` that something reads it: its rows then bring their
    system columns along.
    """

    id: str
    connector: str
    options: dict[str, Any]
    input: str
    columns: tuple[Column, ...]
    refuses: bool = False
    keeps_refused: bool = False


class QueryPlan(Frozen):
    """One Spark query: the part of the graph above one terminal node, and the sinks fed by it and by side ports.

    `operators` is the main path in topological order, ending with the terminal. `side_operators` are those
    between a side port and its sinks. `accounts` names the sources and operators whose side ports and counts
    belong to this query; each belongs to exactly one.
    """

    id: str
    terminal: str
    sources: tuple[str, ...]
    operators: tuple[str, ...]
    side_operators: tuple[str, ...]
    sinks: tuple[str, ...]
    accounts: tuple[str, ...]
    state_signature: str


class EpochPolicy(Frozen):
    interval_ms: int = 0
    max_events: int = 500_000


class ExecutionPlan(Frozen):
    version: Literal[1] = 1
    job: str
    mode: Literal["microbatch", "backfill"] = "microbatch"
    parallelism: int | None = None
    epoch: EpochPolicy = EpochPolicy()
    sink_retry_ms: int = 300_000
    sources: dict[str, SourcePlan]
    operators: dict[str, AnyOperator]
    sinks: dict[str, SinkPlan]
    queries: tuple[QueryPlan, ...]
