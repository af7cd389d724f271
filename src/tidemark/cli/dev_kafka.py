"""`dev kafka`: a real broker in the foreground, for a laptop. On loopback only, without a password."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

from tidemark.cli.failures import FINE
from tidemark.errors import UsageError
from tidemark.settings import load_settings
from tidemark.testing.kafka_broker import KafkaBroker


def dev_kafka(port: int, data: Path | None) -> int:
    """Prints the address as the first line of standard output; ends with Ctrl-C."""
    folder = (data or load_settings(Path.cwd()).home / "dev" / "kafka").absolute()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with KafkaBroker(folder, port or None) as broker:
            print(broker.servers, flush=True)
            broker.wait()
    except KeyboardInterrupt:
        return FINE
    raise UsageError("Kafka ended by itself", hint=f"see {folder / 'broker.log'}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
