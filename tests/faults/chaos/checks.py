"""What must hold after every round while the job runs on, and at the end when it has stopped."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from faults.chaos.events import BELLS, TARDY, WINDOW_MS, amount
from faults.chaos.feeder import Feeder
from faults.chaos.job import QUERY_OF, TABLES, TOPICS, ledger_topic
from faults.chaos.stage import Stage
from faults.chaos.witness import Witness
from faults.running import PATIENCE, job_folder, processes
from support.waiting import wait_until

OUTPUTS = (*TOPICS.values(), *(ledger_topic(sink) for sink in TOPICS))
Windows = dict[tuple[str, int], tuple[int, int]]


def after_round(stage: Stage) -> Iterator[str]:
    """Problems in words. Waits for what was sent by now to come out: it has been recovered from."""
    sent = stage.feeder.sent()
    yield from _awaited("events are missing from the log", lambda: _has_all(stage.reader.witness, sent))
    yield from _open_transactions(stage)
    yield from _ledgers(stage, at_rest=False)
    stage.tables.look()
    yield from _witnessed(stage)
    if len(stage.driver_pids()) != 2 or stage.left_behind():
        yield f"processes: {stage.driver_pids()} of the run, {stage.left_behind()} of others"


def at_the_end(stage: Stage, summary: dict[str, Any]) -> Iterator[str]:
    """When the job has stopped, all that was sent having come out."""
    yield from _open_transactions(stage)
    yield from _ledgers(stage, at_rest=True)
    stage.tables.look()
    yield from _witnessed(stage)
    yield from _never_taken_back(stage)
    for witness in (stage.reader.witness, stage.tables.witness):
        yield from _complete(witness, stage.feeder, set(stage.reader.witness.late))
    yield from _side_ports(stage)
    yield from _accounting(stage, summary)
    if left := [pid for run in stage.runs for pid in processes(run.folder)]:
        yield f"processes are left behind: {left}"


def all_is_out(stage: Stage) -> bool:
    """Every event in the log, in a window or late, and in a total; the bells only close windows."""
    witness, sent = stage.reader.witness, stage.feeder.sent()
    settled = sum(events for events, _ in witness.windows.values()) + len(witness.late)
    return _has_all(witness, sent) and witness.counted == sent and settled == sum(sent.values()) - len(BELLS)


def lost(stage: Stage) -> int:
    """Events that one of the logs does not have."""
    sent = Counter(stage.feeder.sent())
    witnesses = (stage.reader.witness, stage.tables.witness)
    return sum((sent - Counter(witness.next_seq)).total() for witness in witnesses)


def repeated(stage: Stage) -> int:
    return stage.reader.witness.repeated + stage.tables.witness.repeated


# --- while it runs ------------------------------------------------------------------------------------------------


def _awaited(problem: str, condition: Any) -> Iterator[str]:
    try:
        wait_until(condition, PATIENCE, 0.05)
    except TimeoutError:
        yield problem


def _has_all(witness: Witness, sent: dict[str, int]) -> bool:
    return all(witness.next_seq[key] >= count for key, count in sent.items())


def _open_transactions(stage: Stage) -> Iterator[str]:
    """Readers of committed records come to what is the end now: nobody has left a transaction open before it."""
    for topic in OUTPUTS:
        ends = stage.topics.end_offsets(topic, committed=False)

        def stable(topic: str = topic, ends: dict[int, int] = ends) -> bool:
            stable_ends = stage.topics.end_offsets(topic, committed=True)
            return all(stable_ends[partition] >= end for partition, end in ends.items())

        yield from _awaited(f"{topic}: a transaction is left open", stable)


def _ledgers(stage: Stage, *, at_rest: bool) -> Iterator[str]:
    """A ledger is never behind what an epoch's record says, nor ahead of what is logged; at rest all are equal."""
    recorded = {sink: _recorded(stage, sink) for sink in QUERY_OF}
    tables = stage.tables.ledger()
    held = {**tables, **{sink: _kafka_epoch(stage, sink, recorded[sink]) for sink in TOPICS}}
    for sink, record in recorded.items():
        logged = _newest(stage, QUERY_OF[sink], "offsets")
        most = record if at_rest else logged
        if not _number(record) <= _number(held[sink]) <= _number(most):
            yield f"{sink} holds epoch {held[sink]}, its record says {record}, logged is {logged}"


def _number(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def _recorded(stage: Stage, sink: str) -> int | None:
    folder = job_folder(stage.site) / "queries" / QUERY_OF[sink]
    committed = _newest(stage, QUERY_OF[sink], "commits")
    if committed is None:
        return None
    epoch: int | None = json.loads((folder / "tidemark" / str(committed)).read_text())["sinks"].get(sink)
    return epoch


def _newest(stage: Stage, query: str, log: str) -> int | None:
    entries = (job_folder(stage.site) / "queries" / query / log).glob("[0-9]*")
    return max((int(entry.name) for entry in entries), default=None)


def _kafka_epoch(stage: Stage, sink: str, at_least: int | None) -> int | None:
    """As the reader sees it, which may be a moment behind."""

    def epoch() -> int:
        marker = stage.reader.newest_marker(sink)
        return _number(marker.epoch if marker is not None else None)

    list(_awaited("", lambda: epoch() >= _number(at_least)))
    return epoch()


def _witnessed(stage: Stage) -> Iterator[str]:
    if stage.reader.failure is not None:
        yield f"the reader failed: {stage.reader.failure!r}"
    for witness in (stage.reader.witness, stage.tables.witness):
        found, witness.problems = witness.problems, []
        yield from found[:5]
        if len(found) > 5:
            yield f"{witness.place}: and {len(found) - 5} more"


# --- at the end ---------------------------------------------------------------------------------------------------


def _never_taken_back(stage: Stage) -> Iterator[str]:
    """What the reader saw while things died is what the topics hold, record by record; no marker without its rows."""
    for topic in OUTPUTS:
        ends = stage.topics.end_offsets(topic, committed=False)
        yield from _awaited(
            f"{topic}: the reader does not come to its end",
            lambda topic=topic, ends=ends: stage.reader.has_reached(topic, ends),
        )
        held: dict[int, list[tuple[int, bytes | None]]] = defaultdict(list)
        for record in stage.topics.read(topic):
            held[record.partition].append((record.offset, record.value))
        if any(held[partition] != stage.reader.records[topic, partition] for partition in ends):
            yield f"{topic} does not hold what was read from it"
    for sink, topic in TOPICS.items():
        noted = sum({marker.epoch: marker.rows for marker in stage.reader.markers[sink]}.values())
        seen = sum(len(rows) for (name, _), rows in stage.reader.records.items() if name == topic)
        if noted != seen:
            yield f"{topic}: the markers speak of {noted} rows, there are {seen}"


def _complete(witness: Witness, feeder: Feeder, late: set[tuple[str, int]]) -> Iterator[str]:
    sent = feeder.sent()
    if dict(witness.next_seq) != sent:
        yield f"{witness.place}: the log ends at {dict(witness.next_seq)}, sent were {sent}"
    if dict(witness.counted) != sent:
        yield f"{witness.place}: the totals end at {dict(witness.counted)}, sent were {sent}"
    expected = _windows(feeder, late)
    if witness.windows != expected:
        wrong = {window for window, _ in witness.windows.items() ^ expected.items()}
        yield f"{witness.place}: {len(wrong)} windows are wrong or missing, {sorted(wrong)[:3]} among them"


def _windows(feeder: Feeder, late: set[tuple[str, int]]) -> Windows:
    """Recomputed from everything that was sent and not late."""
    held: Windows = defaultdict(lambda: (0, 0))
    for event in feeder.events:
        if event.key is None or event.key in BELLS or (event.key, event.seq) in late:
            continue
        window = (event.key, event.time_ms // WINDOW_MS * WINDOW_MS)
        events, total = held[window]
        held[window] = (events + 1, total + amount(event.key, event.seq))
    return dict(held)


def _side_ports(stage: Stage) -> Iterator[str]:
    late = {key for key, _ in stage.reader.witness.late}
    if not late or not late <= set(TARDY):
        yield f"late are events of {sorted(late)}; they should be of {TARDY}"
    bad = stage.tables.bad()
    if sorted(bad) != sorted(stage.feeder.poison):
        yield f"{len(bad)} bad records are kept, {len(stage.feeder.poison)} were sent"


def _accounting(stage: Stage, summary: dict[str, Any]) -> Iterator[str]:
    """The job's own account of itself, through all attempts."""
    events, poison = sum(stage.feeder.sent().values()), len(stage.feeder.poison)
    expected = {"in": events + poison, "accepted": events, "errors": poison}
    if summary["sources"]["events"] != expected:
        yield f"the job counted {summary['sources']['events']}, sent were {expected}"
    records = Counter[str]()
    for (topic, _), seen in stage.reader.records.items():
        records[topic] += len(seen)
    held = {**stage.tables.held_rows(), **{sink: records[topic] for sink, topic in TOPICS.items()}}
    counted = {sink: summary["sinks"][sink]["rows"] for sink in held}
    if counted != held:
        yield f"the job counted {counted} rows written, there are {held}"
    assert set(held) | {"totals_table"} == {*TABLES, *TOPICS}
