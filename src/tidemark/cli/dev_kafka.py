"""`dev kafka`: a real broker in the foreground, for a laptop. On loopback only, without a password."""

from __future__ import annotations

from pathlib import Path

from tidemark.cli.foreground import run_in_foreground
from tidemark.settings import load_settings
from tidemark.testing.kafka_broker import KafkaBroker


def dev_kafka(port: int, data: Path | None) -> int:
    """Prints the address as the first line of standard output; ends with Ctrl-C."""
    folder = (data or load_settings(Path.cwd()).home / "dev" / "kafka").absolute()
    broker = KafkaBroker(folder, port or None)
    return run_in_foreground("Kafka", broker, lambda running: running.servers, broker.log)
