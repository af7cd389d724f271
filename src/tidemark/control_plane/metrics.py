"""Prometheus: what is counted as epochs come in, and what is read off the jobs when somebody asks.

Names and labels are the contract's. Counts that drivers report are totals since the job began, so a restart of the
control plane loses none; the histograms begin anew with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidemark.compiler.plan.plan import SourcePlan
from tidemark.protocol.messages import EpochCommitted
from tidemark.protocol.status import DriverStatus, QueryStatus

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

HISTOGRAMS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("tidemark_epoch_duration_seconds", "How long an epoch took.", ()),
    (
        "tidemark_window_firing_latency_seconds",
        "From the watermark's passing a window's end to its committed result.",
        ("operator",),
    ),
    ("tidemark_sink_commit_seconds", "How long a sink took to commit.", ("sink",)),
)


class EpochMetrics:
    """Histograms, fed with every committed epoch. Safe to use from many threads."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._epochs, self._firing, self._sinks = (self._histogram(*each) for each in HISTOGRAMS)

    def observe(self, job: str, epoch: EpochCommitted) -> None:
        self._epochs.labels(job).observe(epoch.duration_ms / 1000)
        for operator, milliseconds in epoch.firing_ms.items():
            self._firing.labels(job, operator).observe(milliseconds / 1000)
        for sink, milliseconds in epoch.sink_commit_ms.items():
            self._sinks.labels(job, sink).observe(milliseconds / 1000)

    def forget(self, job: str) -> None:
        for histogram in (self._epochs, self._firing, self._sinks):
            histogram.remove_by_labels({"job": job})

    def _histogram(self, name: str, text: str, labels: tuple[str, ...]) -> Histogram:
        return Histogram(name, text, ("job", *labels), buckets=_SECONDS, registry=self.registry)


@dataclass(frozen=True)
class JobSample:
    """One job at the moment of a scrape."""

    name: str
    state: str
    restarts: int
    sources: dict[str, SourcePlan]
    status: DriverStatus | None
    lag_seconds: float | None
    backpressure: float


class JobCollector(Collector):
    """Reads all jobs once for every scrape."""

    def __init__(self, jobs: Callable[[], Iterable[JobSample]], states: Iterable[str], now: Callable[[], datetime]):
        self._jobs = jobs
        self._states = tuple(states)
        self._now = now

    def collect(self) -> Iterator[Metric]:
        families = _Families()
        for job in self._jobs():
            for state in self._states:
                families.gauge("tidemark_job_state", (job.name, state), float(job.state == state))
            families.count("tidemark_restarts", (job.name,), job.restarts)
            if job.status is not None:
                self._status(families, job, job.status)
        return families.all()

    def _status(self, families: _Families, job: JobSample, status: DriverStatus) -> None:
        self._sources(families, job, status)
        if job.lag_seconds is not None:
            families.gauge("tidemark_lag_seconds", (job.name,), job.lag_seconds)
        for operator in status.operators:
            _operator(families, job, operator.id, status)
        for query in status.queries:
            _checkpoint(families, job, query)

    def _sources(self, families: _Families, job: JobSample, status: DriverStatus) -> None:
        now = self._now()
        for id_, source in status.sources.items():
            if id_ in job.sources:
                policy = job.sources[id_].watermark
                allowed = (policy.delay_ms + policy.idle_timeout_ms) / 1000
                families.gauge("tidemark_watermark_lag_allowed_seconds", (job.name, id_), allowed)
            for partition in source.partitions:
                labels = (job.name, id_, str(partition.partition))
                if partition.watermark is not None:
                    lag = (now - partition.watermark).total_seconds()
                    families.gauge("tidemark_watermark_lag_seconds", labels, max(lag, 0.0))
                if partition.lag is not None:
                    families.gauge("tidemark_lag_events", labels, partition.lag)
                families.gauge("tidemark_partition_idle", labels, float(partition.idle))
        for id_, counts in status.total.sources.items():
            families.count("tidemark_events", (job.name, id_, "accepted"), counts.accepted)
            families.count("tidemark_events", (job.name, id_, "error"), counts.errors)


def _operator(families: _Families, job: JobSample, id_: str, status: DriverStatus) -> None:
    operator = next(each for each in status.operators if each.id == id_)
    families.count("tidemark_operator_rows", (job.name, id_, "in"), operator.rows_in)
    families.count("tidemark_operator_rows", (job.name, id_, "out"), operator.rows_out)
    families.count("tidemark_operator_rows", (job.name, id_, "late"), operator.late)
    if operator.state_rows is not None:
        families.gauge("tidemark_state_rows", (job.name, id_), operator.state_rows)
    if operator.state_bytes is not None:
        families.gauge("tidemark_state_bytes", (job.name, id_), operator.state_bytes)
    pressed = job.backpressure if status.slowest_step == id_ else 0.0
    families.gauge("tidemark_backpressure", (job.name, id_), pressed)


def _checkpoint(families: _Families, job: JobSample, query: QueryStatus) -> None:
    if query.committed_at is not None:
        families.gauge("tidemark_last_commit_timestamp_seconds", (job.name, query.id), query.committed_at.timestamp())
    if query.checkpoint is not None:
        seconds = query.checkpoint.duration_ms / 1000
        families.gauge("tidemark_checkpoint_duration_seconds", (job.name, query.id), seconds)
        families.gauge("tidemark_checkpoint_bytes", (job.name, query.id), query.checkpoint.bytes)


class _Families:
    def __init__(self) -> None:
        self._families: dict[str, Metric] = {
            **{name: GaugeMetricFamily(name, text, labels=labels) for name, (text, labels) in GAUGES.items()},
            **{name: CounterMetricFamily(name, text, labels=labels) for name, (text, labels) in COUNTERS.items()},
        }

    def gauge(self, name: str, labels: tuple[str, ...], value: float) -> None:
        self._add(name, labels, value)

    def count(self, name: str, labels: tuple[str, ...], value: float) -> None:
        self._add(name, labels, value)

    def _add(self, name: str, labels: tuple[str, ...], value: float) -> None:
        family = self._families[name]
        assert isinstance(family, GaugeMetricFamily | CounterMetricFamily)
        family.add_metric(labels, value)

    def all(self) -> Iterator[Metric]:
        return iter(self._families.values())


GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tidemark_job_state": ("1 for the state the job is in, else 0.", ("job", "state")),
    "tidemark_watermark_lag_seconds": (
        "How far a partition's watermark is behind the clock.",
        ("job", "source", "partition"),
    ),
    "tidemark_watermark_lag_allowed_seconds": (
        "The watermark lag up to which all is well: the source's delay and its idle timeout.",
        ("job", "source"),
    ),
    "tidemark_lag_events": ("Events that wait in the source.", ("job", "source", "partition")),
    "tidemark_lag_seconds": ("How long the events that wait will take at the current rate.", ("job",)),
    "tidemark_partition_idle": ("1 for a partition that is idle.", ("job", "source", "partition")),
    "tidemark_state_rows": ("Rows of keyed state.", ("job", "operator")),
    "tidemark_state_bytes": ("Bytes of keyed state.", ("job", "operator")),
    "tidemark_backpressure": ("How much the operator holds the job up, 0 to 1.", ("job", "operator")),
    "tidemark_checkpoint_duration_seconds": ("How long the newest checkpoint took.", ("job", "query")),
    "tidemark_checkpoint_bytes": ("The size of the newest checkpoint.", ("job", "query")),
    "tidemark_last_commit_timestamp_seconds": ("When the newest epoch was committed.", ("job", "query")),
}
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tidemark_restarts": ("Restarts after a crash.", ("job",)),
    "tidemark_events": ("Events taken in.", ("job", "source", "outcome")),
    "tidemark_operator_rows": ("Rows in, out and late.", ("job", "operator", "direction")),
}


def render(metrics: EpochMetrics, collector: JobCollector) -> bytes:
    scrape = CollectorRegistry()
    scrape.register(collector)
    return generate_latest(scrape) + generate_latest(metrics.registry)
