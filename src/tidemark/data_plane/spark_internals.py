"""The only place that touches Spark's private API. Each function names what it relies on; a contract test covers it.

Everything here was found by running Spark 4.3.0. An upgrade that breaks one of these fails that test by name.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol
from urllib.parse import unquote

from py4j.java_gateway import is_instance_of
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

JavaObject = Any
_MAY_BE_BOUNDED = "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow"


@dataclass(frozen=True)
class EpochFacts:
    """What Spark logged for the epoch before it ran, so a replay sees the same. Milliseconds since 1970."""

    watermark_ms: int
    previous_watermark_ms: int
    started_ms: int


@dataclass(frozen=True)
class LostExecutor:
    """`reason` is Spark's word for it, of one line."""

    id: str
    address: str
    reason: str


class Signals(Protocol):
    """What Spark tells about its queries, on a thread of its own."""

    def on_committed(self, done: StreamingQueryProgress) -> None: ...

    def on_idle(self, query_id: str) -> None: ...

    def on_terminated(self) -> None: ...


@contextmanager
def listening(spark: SparkSession, signals: Signals) -> Iterator[None]:
    """Hands Spark's signals on for as long as this is held."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    listener = gateway.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(_Listener(signals))
    manager = spark.streams._jsqm
    manager.addListener(listener)
    try:
        yield
    finally:
        if jvm_is_alive(spark):
            manager.removeListener(listener)


class _Listener:
    """Takes each signal as one text, where PySpark's own listener makes some three hundred calls into Java for it."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    def onQueryStarted(self, event: JavaObject) -> None:
        """Whoever starts a query knows."""

    def onQueryProgress(self, event: JavaObject) -> None:
        self._signals.on_committed(_progress(event.progress().json()))

    def onQueryIdle(self, event: JavaObject) -> None:
        self._signals.on_idle(event.id().toString())

    def onQueryTerminated(self, event: JavaObject) -> None:
        self._signals.on_terminated()

    class Java:
        implements: ClassVar[list[str]] = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


def _progress(text: str) -> StreamingQueryProgress:
    """Spark leaves out rates that are no numbers, as when no time has passed; PySpark wants those of sources."""
    told = json.loads(text)
    for source in told["sources"]:
        source.setdefault("inputRowsPerSecond", None)
        source.setdefault("processedRowsPerSecond", None)
    return StreamingQueryProgress.fromJson(told)


class Execution:
    """The micro-batch execution behind a running query."""

    def __init__(self, query: StreamingQuery) -> None:
        java_query = query._jsq
        wrapped = java_query.getClass().getSimpleName() == "StreamingQueryWrapper"
        self._execution: JavaObject = java_query.streamingQuery() if wrapped else java_query

    def has_run(self) -> bool:
        """Whether an epoch has been planned since the query started."""
        return self._execution.lastExecution() is not None

    def facts(self) -> EpochFacts:
        """The watermarks in force and the logged time of the epoch that is running or ran last."""
        last = self._execution.lastExecution()
        logged, previous = last.offsetSeqMetadata(), last.prevOffsetSeqMetadata()
        previous_ms = previous.get().batchWatermarkMs() if previous.isDefined() else 0
        return EpochFacts(logged.batchWatermarkMs(), previous_ms, logged.batchTimestampMs())

    def observed(self) -> dict[str, list[Any]]:
        """The values of every `observe` of the epoch, by name; complete once an action has run.

        A value called `name|rest` stands under that name, not under that of the `observe` it was counted in.
        """
        metrics = self._execution.lastExecution().observedMetrics()
        found: dict[str, list[Any]] = {}
        names = metrics.keysIterator()
        while names.hasNext():
            name = names.next()
            for column, value in json.loads(metrics.apply(name).json()).items():
                found.setdefault(column.rpartition("|")[0] or name, []).append(value)
        return found

    def source_names(self) -> list[str]:
        """The names, or places, of the query's sources in the order in which Spark reports their progress."""
        names = self._execution.sourceToIdMap()
        return [str(names.apply(source)) for source in _items(self._execution.sources())]

    def bound_sources(self) -> bool:
        """Sources give what they have now and no more; False while Spark has not made them. Not during the planning.

        Spark prepares the sources of queries that end by themselves in this way. Kafka looks when the next epoch is
        planned, others at once; one that cannot be prepared is left alone.
        """
        sources = list(_items(self._execution.sources()))
        for source in sources:
            if is_instance_of(SparkContext._gateway, source, _MAY_BE_BOUNDED):
                source.prepareForTriggerAvailableNow()
        return bool(sources)

    def set_watermark(self, watermark_ms: int) -> None:
        """Hands the next epoch's watermark to Spark, from inside the batch function."""
        self._execution.watermarkTracker().setWatermark(watermark_ms)

    @contextmanager
    def between_epochs(self) -> Iterator[None]:
        """While this is held, Spark does not plan an epoch."""
        lock = self._execution.awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    def tick_watermark(self, watermark_ms: int) -> None:
        """Moves the watermark; Spark then runs an epoch without data if something can close.

        An epoch that is on its way keeps the watermark it was logged with, and what it was planned from.
        """
        with self.between_epochs():
            last = self._execution.lastExecution()
            if last is not None and not self._epoch_is_on_its_way():
                # Without this Spark asserts that a batch keeps the watermark it was first planned with.
                last.watermarkPropagator().purge(last.currentBatchId() + 2)
            self._execution.watermarkTracker().setWatermark(watermark_ms)

    def _epoch_is_on_its_way(self) -> bool:
        """Whether Spark has logged an epoch and not committed it; it does both under the lock of `between_epochs`."""
        logged, committed = self._execution.offsetLog(), self._execution.commitLog()
        return bool(logged.getLatestBatchId() != committed.getLatestBatchId())

    def epoch_leaf(self, observation: str) -> JavaObject:
        """The scan under the `observe` of that name in the plan of the epoch."""
        plan = self._execution.lastExecution().executedPlan()
        leaves = plan.collectLeaves()
        if leaves.size() > 1:
            leaves = _find(plan, lambda node: _observes(node, observation)).collectLeaves()
        return leaves.apply(0)

    def stateful_output(self, spark: SparkSession, column: str) -> DataFrame:
        """The rows a Python-stateful node put out this epoch, computed again from the same state version."""

        def is_it(plan: JavaObject) -> bool:
            return plan.nodeName().startswith("TransformWithState") and column in list(plan.schema().fieldNames())

        return scan_frame(spark, _find(self._execution.lastExecution().executedPlan(), is_it))


def scan_frame(spark: SparkSession, node: JavaObject) -> DataFrame:
    """A static frame of exactly the rows that a physical node yields."""
    return _static_frame(spark, node.execute(), node.schema())


def unordered(frame: DataFrame) -> DataFrame:
    """The same rows in the same partitions, without what Spark knows of their order.

    It cannot keep a frame that it takes to be sorted by a column which the frame does not have, as it does behind a
    window with the largest of texts.
    """
    execution = frame._jdf.queryExecution()
    return _static_frame(frame.sparkSession, execution.toRdd(), frame._jdf.schema())


def _static_frame(spark: SparkSession, rows: JavaObject, schema: JavaObject) -> DataFrame:
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rows, schema, False), spark)


def repartition_state(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Adds an epoch to a checkpoint that no query uses: the same state, spread over that many partitions."""
    spark._streamingCheckpointManager.repartition(checkpoint, partitions, True)


def stage_seconds(spark: SparkSession, job: int) -> list[float]:
    """The time that tasks took in each stage of a finished job; the last stage is the one that gives the result."""
    store = spark.sparkContext._jsc.sc().statusStore()
    stages = sorted(_items(store.job(job).stageIds()))
    return [store.lastStageAttempt(stage).executorRunTime() / 1000 for stage in stages]


def lost_executors(spark: SparkSession) -> list[LostExecutor]:
    """The executors that this session had and has no more, as far as Spark remembers: the last hundred."""
    known = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return [
        LostExecutor(summary.id(), summary.hostPort(), _first_line(summary.removeReason()))
        for summary in _items(known)
        if not summary.isActive()
    ]


def _first_line(text: JavaObject) -> str:
    """Of an optional text of Scala's; the lines that follow are stack traces and advice."""
    return str(text.get()).strip().split("\n")[0] if text.isDefined() else ""


def remember_functions(spark: SparkSession) -> None:
    """Spares two of the three questions that PySpark asks Java for every column it builds: what a function is.

    Relies on py4j's view of Java, which is asked for these names, finding what was put into it itself.
    """
    view = spark._jvm
    for name in ("org.apache.spark.sql.functions", "functions", "PythonUtils"):
        if name not in vars(view):
            setattr(view, name, _Known(getattr(view, name)))


class _Known:
    """A Java class whose static members are looked up once."""

    def __init__(self, java_class: JavaObject) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> JavaObject:
        member = getattr(self._class, name)
        setattr(self, name, member)
        return member


def java_is_running() -> bool:
    """Whether this process has a Java process already, which the next session will use as it is."""
    return SparkContext._gateway is not None


def jvm_is_alive(spark: SparkSession) -> bool:
    """Whether the Java process that this Python process started is still there."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def java_ends(spark: SparkSession, seconds: float) -> bool:
    """Whether the Java process is gone within that time: its connections are closed a moment before it is."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def end_with_java(spark: SparkSession, seconds: float) -> None:
    """Stops the session and its Java process, which ends in good order when nobody can talk to it any more."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(seconds)


def read_nothing(leaf: JavaObject) -> bool:
    """Whether a source had no new data in the epoch: Spark puts an empty local relation in its place."""
    return bool(leaf.nodeName() == "LocalTableScan")


def scanned_files(leaf: JavaObject) -> list[str]:
    """The files a file scan reads in this epoch, as names for Spark's readers."""
    return [unquote(url) for url in leaf.relation().location().inputFiles()]


@cache
def has_class(context: SparkContext, name: str) -> bool:
    """Whether the driver's Java finds a class. Relies on a helper of Spark's; asked once, as it takes some calls."""
    jvm = context._jvm
    assert jvm is not None
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(name))


def _items(sequence: JavaObject) -> Iterator[JavaObject]:
    """Of a sequence of Scala's, one after the other."""
    return (sequence.apply(index) for index in range(sequence.size()))


def _observes(plan: JavaObject, observation: str) -> bool:
    return bool(plan.nodeName() == "CollectMetrics" and plan.name() == observation)


def _find(plan: JavaObject, matches: Any) -> JavaObject:
    pending = [plan]
    while pending:
        node = pending.pop()
        if matches(node):
            return node
        pending.extend(_items(node.children()))
    raise LookupError("the plan of the epoch has no such node")
