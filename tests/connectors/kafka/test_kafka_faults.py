"""Kills, zombies and outages against a real broker: every row once, and no reader left waiting."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from connectors.arrow_rows import context_for
from connectors.kafka import stricken_writer
from connectors.kafka.stricken_writer import COLUMNS, FENCED, ROWS, options, rows_of
from support.processes import is_stopped
from support.waiting import wait_until

from tidemark.connectors.kafka import sink as sink_module
from tidemark.connectors.kafka.group import GroupOffsets
from tidemark.connectors.kafka.sink import KafkaSink
from tidemark.errors import SinkUnavailable
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics
from tidemark.testing.sink_target import FAILPOINTS

pytestmark = pytest.mark.faults


def start_writer(servers: str, topic: str, point: str, number: signal.Signals) -> subprocess.Popen[str]:
    tests = Path(stricken_writer.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, stricken_writer.__file__, servers, topic, point, number.name]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def numbers(topics: Topics, topic: str) -> list[int]:
    return sorted(json.loads(record.value or b"")["n"] for record in topics.read(topic))


def nobody_waits(topics: Topics, topic: str) -> bool:
    return topics.end_offsets(topic, committed=True) == topics.end_offsets(topic, committed=False)


@pytest.mark.parametrize("point", FAILPOINTS)
def test_after_a_kill(point: str, kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    with start_writer(kafka_broker.servers, name, point, signal.SIGKILL) as writer:
        assert writer.wait(60) == -signal.SIGKILL, writer.communicate()
    committed = point == "after_sink_commit"
    assert nobody_waits(topics, name) == committed
    sink = KafkaSink(context_for(Path(), options(kafka_broker.servers, name), COLUMNS, attempt=2))
    assert sink.open() == (1 if committed else 0)
    assert sink.held(1) == (ROWS if committed else None)
    assert nobody_waits(topics, name)
    if not committed:
        assert numbers(topics, name) == list(range(ROWS))
        sink.write(1, rows_of(1))
    sink.close()
    assert numbers(topics, name) == list(range(2 * ROWS))


def test_a_zombie_is_refused(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    with start_writer(kafka_broker.servers, name, "mid_sink", signal.SIGSTOP) as zombie:
        wait_until(lambda: is_stopped(zombie.pid))
        assert not nobody_waits(topics, name)
        successor = KafkaSink(context_for(Path(), options(kafka_broker.servers, name), COLUMNS, attempt=2))
        assert successor.open() == 0
        assert nobody_waits(topics, name)
        successor.write(1, rows_of(1))
        zombie.send_signal(signal.SIGCONT)
        assert zombie.wait(60) == FENCED, zombie.communicate()
    assert numbers(topics, name) == list(range(2 * ROWS))
    assert successor.write(2, rows_of(2)) == ROWS
    successor.close()
    assert numbers(topics, name) == list(range(3 * ROWS))
    assert nobody_waits(topics, name)


@pytest.fixture(scope="module")
def mortal_broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker


def test_a_broker_killed_in_the_middle_and_in_the_commit(
    mortal_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sink_module, "_COMMIT_SECONDS", 2.0)
    monkeypatch.setattr(sink_module, "_ABORT_SECONDS", 1.0)
    monkeypatch.setattr(sink_module, "_TAKE_OVER_SECONDS", 2.0)
    kills = iter(["mid_sink", "before_sink_commit", "after_sink_commit"])
    next_kill = next(kills)

    def strike(point: str) -> None:
        if point == next_kill:
            mortal_broker.kill()

    given = {**options(mortal_broker.servers, name), "properties": {"message.timeout.ms": "2000"}}
    sink = KafkaSink(context_for(Path(), given, COLUMNS, failpoint=strike))
    sink.open()
    for epoch in range(2):
        with pytest.raises(SinkUnavailable):
            sink.write(epoch, rows_of(epoch))
        next_kill = ""
        mortal_broker.start()
        wait_until(functools.partial(settled, sink, epoch), 60)
        next_kill = next(kills)
    assert sink.write(2, rows_of(2)) == ROWS
    mortal_broker.start()
    topics = Topics(mortal_broker.servers)
    assert numbers(topics, name) == list(range(3 * ROWS))
    assert nobody_waits(topics, name)
    sink.close()


def test_offsets_that_are_noted_in_an_outage_reach_their_group(mortal_broker: KafkaBroker, name: str) -> None:
    topics = Topics(mortal_broker.servers)
    topics.create(name)
    noted = GroupOffsets({"bootstrap.servers": mortal_broker.servers}, name)
    noted.note({name: {"0": 1}})
    wait_until(lambda: topics.group_offsets(name, name) == {0: 1})
    mortal_broker.kill()
    noted.note({name: {"0": 2}})
    mortal_broker.start()
    wait_until(lambda: topics.group_offsets(name, name) == {0: 2})
    noted.close()


def settled(sink: KafkaSink, epoch: int) -> bool:
    """Tries as the engine does."""
    try:
        return sink.held(epoch) is not None or sink.write(epoch, rows_of(epoch)) == ROWS
    except SinkUnavailable:
        return False
