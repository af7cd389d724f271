"""From the plan of a query to Spark frames.

`QueryFrames` builds the streaming frame with all counting in it. `EpochFrames` builds, from what one epoch read,
the same stateless steps as static frames: that is how bad and late rows are found again without a second stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidemark.compiler.plan.plan import (
    AggregatePlan,
    BranchPlan,
    DedupPlan,
    ExecutionPlan,
    FilterPlan,
    FlatMapPlan,
    MapPlan,
    OperatorPlan,
    QueryPlan,
    SlidingWindow,
    UnionPlan,
    WindowPlan,
)
from tidemark.connectors.connector import FlatJson, Source
from tidemark.data_plane.query.counting import arrival_metrics, field_metrics, source_metrics
from tidemark.data_plane.query.lowering import dedup, stateless, window
from tidemark.data_plane.query.lowering.columns import SYSTEM_NAMES, fenced, observe, quoted, tally
from tidemark.data_plane.query.lowering.decode import fits_flat_json
from tidemark.data_plane.query.lowering.source import Events, read_events, read_flat_events
from tidemark.data_plane.query.paths import ORDER, applied_in_order, main_sinks, needs_event_ids, split_reference
from tidemark.data_plane.session import SOURCE_NAMES
from tidemark.data_plane.spark_internals import Execution, read_nothing, scan_frame, scanned_files
from tidemark.schema import SYSTEM_COLUMNS, parse_type

# Spark's own estimate must never move: the watermark is handed over by the epoch runner.
_NEVER = "100000 days"


class Frames:
    """Frames of ports by reference, each built once. Subclasses say where sources and stateful operators come from."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self._nodes: dict[str, DataFrame] = {}

    def port(self, reference: str) -> DataFrame:
        """Payload and system columns of one port."""
        node, port = split_reference(reference)
        operator = self.plan.operators.get(node)
        if isinstance(operator, BranchPlan):
            return stateless.take_port(operator, self.node(node), port)
        return self.node(node)

    def node(self, node: str) -> DataFrame:
        """Everything a node puts out: of a branch, all its ports, with the column that tells them apart."""
        if node not in self._nodes:
            self._nodes[node] = self._build(node)
        return self._nodes[node]

    def input(self, operator: OperatorPlan) -> DataFrame:
        return self.port(operator.inputs[0])

    def _build(self, node: str) -> DataFrame:
        if node in self.plan.sources:
            return self.source(node)
        operator = self.plan.operators[node]
        return self.OPERATORS[type(operator)](self, operator)

    def source(self, node: str) -> DataFrame:
        raise NotImplementedError

    def counted(self, frame: DataFrame, name: str, **metrics: Column) -> DataFrame:
        """A place where rows are counted; static frames do not count again."""
        return frame

    def _filter(self, plan: FilterPlan) -> DataFrame:
        marked = stateless.mark_filtered(plan, self.input(plan))
        keep = F.col(stateless.KEEP)
        counted = self.counted(
            marked, f"filter:{plan.id}", rows_in=F.count(F.lit(1)), passed=tally(keep), filtered=tally(~keep)
        )
        return stateless.drop_filtered(counted)

    def _map(self, plan: MapPlan) -> DataFrame:
        return stateless.lower_map(plan, self.input(plan))

    def _flat_map(self, plan: FlatMapPlan) -> DataFrame:
        frame = stateless.lower_flat_map(plan, self.input(plan))
        return self.counted(frame, f"flat_map:{plan.id}", rows_out=F.count(F.lit(1)))

    def _branch(self, plan: BranchPlan) -> DataFrame:
        marked = stateless.mark_ports(plan, self.input(plan))
        port = F.col(stateless.port_column(plan))
        ports = {name: tally(port == name) for name in (*[item.name for item in plan.when], "main")}
        return self.counted(marked, f"branch:{plan.id}", **ports)

    def _union(self, plan: UnionPlan) -> DataFrame:
        return stateless.lower_union(plan, [self.port(reference) for reference in plan.inputs])

    def _dedup(self, plan: DedupPlan) -> DataFrame:
        raise NotImplementedError

    def _window(self, plan: WindowPlan) -> DataFrame:
        raise NotImplementedError

    def _aggregate(self, plan: AggregatePlan) -> DataFrame:
        raise NotImplementedError

    OPERATORS: ClassVar[dict[type[OperatorPlan], Callable[..., DataFrame]]] = {
        FilterPlan: lambda self, plan: self._filter(plan),
        MapPlan: lambda self, plan: self._map(plan),
        FlatMapPlan: lambda self, plan: self._flat_map(plan),
        BranchPlan: lambda self, plan: self._branch(plan),
        UnionPlan: lambda self, plan: self._union(plan),
        DedupPlan: lambda self, plan: self._dedup(plan),
        WindowPlan: lambda self, plan: self._window(plan),
        AggregatePlan: lambda self, plan: self._aggregate(plan),
    }


class QueryFrames(Frames):
    """The streaming frames of one query: `flat` where lines are trusted, `guarded` where times are not (`Trust`)."""

    def __init__(
        self,
        plan: ExecutionPlan,
        query: QueryPlan,
        sources: dict[str, Source],
        spark: SparkSession,
        named: bool,
        flat: bool,
        guarded: bool,
    ) -> None:
        super().__init__(plan)
        self._query = query
        self.guarded = guarded
        self.sources = sources
        self._spark = spark
        self._named = named
        self._may_be_flat = flat and named and not needs_event_ids(plan, query)
        self._flat: dict[str, FlatJson] = {}

    @property
    def reads_flat_json(self) -> bool:
        """Whether each epoch's lines have to be looked at, by `flat_lines`."""
        return bool(self._flat)

    def flat_lines(self, execution: Execution) -> dict[str, int] | None:
        """The lines of this epoch, by source, where they are read as flat JSON; None if one may not be read so."""
        found: dict[str, int] = {}
        for node, flat in self._flat.items():
            leaf = execution.epoch_leaf(f"source:{node}")
            lines = 0 if read_nothing(leaf) else flat.lines(_Scan(self._spark, leaf))
            if lines is None:
                return None
            found[node] = lines
        return found

    @property
    def output_mode(self) -> str:
        """Spark's word for whether results come when they are final or whenever they change."""
        plans = [self.plan.operators[node] for node in self._query.operators]
        windows = [plan for plan in plans if isinstance(plan, WindowPlan)]
        changes = any(isinstance(plan, AggregatePlan) for plan in plans) or any(w.emit == "on_update" for w in windows)
        return "update" if changes else "append"

    def terminal(self) -> DataFrame:
        """What the sinks on the main path need of the last node, and no more: Spark cannot see past the epoch."""
        self.set_source_names()
        frame = self.node(self._query.terminal)
        needed = self._needed_by_sinks()
        return frame.select(*[quoted(name) for name in frame.columns if name in needed])

    def _needed_by_sinks(self) -> set[str]:
        fed = main_sinks(self.plan, self._query)
        needed = {column.name for sink in fed for column in sink.columns}
        if any(applied_in_order(sink, self.plan) for sink in fed):
            needed |= set(ORDER)
        if any(sink.keeps_refused for sink in fed):
            needed |= set(SYSTEM_NAMES)
        operator = self.plan.operators.get(self._query.terminal)
        return needed | {stateless.port_column(operator)} if isinstance(operator, BranchPlan) else needed

    def set_source_names(self) -> None:
        """Spark looks at this setting when a stream is defined and again when its query starts."""
        self._spark.conf.set(SOURCE_NAMES, "true" if self._named else "false")

    def counted(self, frame: DataFrame, name: str, **metrics: Column) -> DataFrame:
        return observe(frame, name, **metrics)

    def source(self, node: str) -> DataFrame:
        events = self._events(node)
        time = F.col("_event_time")
        good_time = F.when(events.in_time, time) if self.guarded else time
        metrics = {**source_metrics(self.sources[node].partitions), **self._arrivals_at_source(node, good_time)}
        if node in self._flat:
            metrics |= field_metrics(self.plan.sources[node])
        counted = self.counted(events.timed(), f"source:{node}", **metrics)
        if self.guarded:
            # A time too far ahead must not be seen by Spark, which would move its own watermark.
            return counted.where(events.in_time).withWatermark("_event_time", _NEVER)
        # In this order Spark passes the row on as it is, from counting it to looking at its time.
        return counted.withWatermark("_event_time", _NEVER).where(time.isNotNull())

    def _arrivals_at_source(self, node: str, time: Column) -> dict[str, Column]:
        """Counts of operators that every good event of a source reaches: to count it once more there takes time."""
        return {
            f"arrived:{plan.id}|{name}": metric
            for plan in self._operators_behind(node)
            for name, metric in self._arrivals(plan, time).items()
        }

    def _operators_behind(self, source: str) -> list[WindowPlan | AggregatePlan]:
        plans = (self.plan.operators[node] for node in self._query.operators)
        counted = [plan for plan in plans if isinstance(plan, WindowPlan | AggregatePlan)]
        return [plan for plan in counted if self._counted_at_source(plan) == source]

    def _counted_at_source(self, plan: WindowPlan | AggregatePlan) -> str | None:
        """The source at which arrivals are counted: where nothing on the way to the operator can withhold an event."""
        if not self._named or (isinstance(plan, WindowPlan) and isinstance(plan.window, SlidingWindow)):
            return None
        behind = plan.inputs[0]
        while isinstance(before := self.plan.operators.get(behind), MapPlan):
            behind = before.inputs[0]
        return behind if behind in self.plan.sources else None

    def _arrivals(self, plan: WindowPlan | AggregatePlan, time: Column) -> dict[str, Column]:
        if isinstance(plan, WindowPlan):
            assert not isinstance(plan.window, SlidingWindow)
            return arrival_metrics(window.own_end(plan.window, F.unix_micros(time)))
        return {"rows_in": F.count(time)}

    def _events(self, node: str) -> Events:
        plan, records = self.plan.sources[node], self.sources[node].stream(self._spark)
        if records.flat_json is None or not self._may_be_flat or not fits_flat_json(plan):
            return read_events(records, plan, F.current_timestamp())
        self._flat[node] = records.flat_json
        return read_flat_events(records, records.flat_json, plan, F.current_timestamp())

    def _dedup(self, plan: DedupPlan) -> DataFrame:
        arrived = dedup.with_horizon(plan, self.input(plan))
        arrived = self.counted(arrived, f"arrived:{plan.id}", **arrival_metrics(F.col(dedup.HORIZON)))
        marked = dedup.unpack(plan, dedup.mark_duplicates(plan, arrived))
        mark = F.col(dedup.duplicate_column(plan))
        counted = self.counted(marked, f"dedup:{plan.id}", passed=tally(~mark), duplicates=tally(mark))
        return counted.where(~mark).drop(mark)

    def _window(self, plan: WindowPlan) -> DataFrame:
        results = window.aggregate_window(plan, self._assigned(plan))
        return self.counted(results, f"results:{plan.id}", rows_out=F.count(F.lit(1)))

    def _assigned(self, plan: WindowPlan) -> DataFrame:
        """The assignments of events to windows, counted. Where each event has one, the event is cheaper to count."""
        if isinstance(plan.window, SlidingWindow):
            assigned = window.assign(plan, self.input(plan))
            return self.counted(assigned, f"arrived:{plan.id}", **arrival_metrics(F.col(window.END)))
        return window.assign(plan, self._arrived(plan))

    def _arrived(self, plan: WindowPlan | AggregatePlan) -> DataFrame:
        if self._counted_at_source(plan):
            return self.input(plan)
        return self.counted(self.input(plan), f"arrived:{plan.id}", **self._arrivals(plan, F.col("_event_time")))

    def _aggregate(self, plan: AggregatePlan) -> DataFrame:
        results = window.aggregate_running(plan, self._arrived(plan))
        return self.counted(results, f"results:{plan.id}", rows_out=F.count(F.lit(1)))


class EpochFrames(Frames):
    """What one epoch read, again: sources from their scans, dedup from its own physical node.

    Operators behind a side port exist only here, so here they are counted.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        query: QueryPlan,
        sources: dict[str, Source],
        spark: SparkSession,
        execution: Execution,
        ingestion_ms: int,
    ) -> None:
        super().__init__(plan)
        self._side_operators = query.side_operators
        self._observations: dict[str, Observation] = {}
        self._sources = sources
        self._spark = spark
        self._execution = execution
        self._ingestion_time = F.timestamp_millis(F.lit(ingestion_ms))
        self._events: dict[str, Events] = {}
        self._provided: dict[str, DataFrame] = {}

    def events(self, node: str) -> Events:
        """Every record of a source in this epoch, good and bad."""
        if node not in self._events:
            scan = _Scan(self._spark, self._execution.epoch_leaf(f"source:{node}"))
            records = self._sources[node].reread(self._spark, scan)
            self._events[node] = read_events(records, self.plan.sources[node], self._ingestion_time)
        return self._events[node]

    def recount(self, node: str) -> list[Any]:
        """What a source counted in this epoch, leaving out events that are too far ahead of their ingestion."""
        metrics = source_metrics(self._sources[node].partitions)
        return list(self.events(node).recounted(metric.alias(name) for name, metric in metrics.items()))

    def source(self, node: str) -> DataFrame:
        if read_nothing(self._execution.epoch_leaf(f"source:{node}")):
            return self._no_events(node)
        return self.events(node).accepted()

    def _no_events(self, node: str) -> DataFrame:
        columns = [(column.name, parse_type(column.type)) for column in self.plan.sources[node].columns]
        ddl = ", ".join(f"{quoted(name)} {type_.ddl}" for name, type_ in (*columns, *SYSTEM_COLUMNS))
        return self._spark.createDataFrame([], ddl)

    def counted(self, frame: DataFrame, name: str, **metrics: Column) -> DataFrame:
        if name.partition(":")[2] not in self._side_operators:
            return frame
        self._observations[name] = Observation(name)
        return observe(frame, self._observations[name], **metrics)

    def observed(self) -> dict[str, list[Any]]:
        """What the operators behind side ports counted; complete once the rows of their sinks have been read."""
        return {name: list(observation.get.values()) for name, observation in self._observations.items()}

    def provide(self, reference: str, frame: DataFrame) -> None:
        """The frame of a side port, for the operators and sinks behind it."""
        self._provided[reference] = frame

    def provides(self, reference: str) -> bool:
        return reference in self._provided

    def port(self, reference: str) -> DataFrame:
        return self._provided[reference] if reference in self._provided else super().port(reference)

    def _dedup(self, plan: DedupPlan) -> DataFrame:
        mark = dedup.duplicate_column(plan)
        marked = dedup.unpack(plan, self._execution.stateful_output(self._spark, mark))
        return fenced(marked, plan.id).where(~F.col(mark)).drop(mark)


class _Scan:
    def __init__(self, spark: SparkSession, leaf: object) -> None:
        self._spark = spark
        self._leaf = leaf

    def files(self) -> list[str]:
        return scanned_files(self._leaf)

    def frame(self) -> DataFrame:
        return scan_frame(self._spark, self._leaf)
