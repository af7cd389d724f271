"""The broker kit: a real Kafka that can be stopped, killed, frozen and never outlives whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import is_alive
from support.waiting import wait_until

from tidemark.errors import EnvironmentFault
from tidemark.testing.kafka_broker import KafkaBroker, class_archive
from tidemark.testing.kafka_topics import Record, Topics

pytestmark = pytest.mark.slow


def test_its_life() -> None:
    with KafkaBroker() as broker:
        topics = Topics(broker.servers)
        topics.create("t", 2)
        topics.produce("t", [Record(b"old", timestamp_ms=1), Record(b"other", partition=1)])
        broker.kill()
        assert not broker.alive
        broker.start()
        # Java unmaps an archive that does not fit, so one that is mapped is in use.
        assert str(class_archive()) in Path(f"/proc/{broker.pid}/maps").read_text()
        topics.produce("t", [Record(b"new")])
        assert [record.value for record in topics.read("t")] == [b"old", b"new", b"other"]
        broker.pause()
        broker.resume()
        broker.restart()
        assert topics.end_offsets("t", committed=True) == {0: 2, 1: 1}
        pid, data = broker.pid, broker.log.parent
    assert not is_alive(pid)
    assert not data.exists()


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where a folder should be")
    with pytest.raises(EnvironmentFault, match="could not prepare"), KafkaBroker(tmp_path):
        pass


def test_it_ends_with_a_killed_owner() -> None:
    program = """
import time
from tidemark.testing.kafka_broker import KafkaBroker
with KafkaBroker() as broker:
    print(broker.pid, broker.log.parent, flush=True)
    time.sleep(600)
"""
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout as words:
        pid, data = words.readline().split()
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    wait_until(lambda: not is_alive(int(pid)), deadline=10)
    subprocess.run(["rm", "-r", data], check=True)
