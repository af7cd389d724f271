"""`dev kafka`: prints where it is, answers there, and goes with Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.testing.kafka_topics import Record, Topics


@pytest.mark.slow
def test_a_broker_for_a_laptop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidemark", "dev", "kafka", "--port", "0", "--data", "data"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        topics = Topics(process.stdout.readline().strip())
        topics.create("t")
        topics.produce("t", [Record(b"hello")])
        assert [record.value for record in topics.read("t")] == [b"hello"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert (tmp_path / "data" / "log").is_dir()
