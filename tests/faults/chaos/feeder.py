"""Feeds the chaos job at a steady pace, whatever happens to the broker, and remembers what it sent."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable

from confluent_kafka import KafkaError, Message, Producer
from faults.chaos.events import HOUR_MS, Sent, bells, stream
from faults.chaos.job import TOPIC

BATCH = 20
PAUSE_SECONDS = 0.1
FLUSH_SECONDS = 120.0
# So far back that nothing, not even the bell, is ahead of the clock.
BASE_MS = 12 * HOUR_MS


class Feeder:
    """A record that the broker does not acknowledge is sent again, in order and once, until it does."""

    def __init__(self, servers: str, seed: int) -> None:
        self.events: list[Sent] = []
        self.poison: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self.refused: list[KafkaError] = []
        self._source = stream(seed, int(time.time() * 1000) - BASE_MS)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "message.timeout.ms": 600_000,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 5,
                "log_level": 0,
                "on_delivery": self._on_delivery,
            }
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def sent(self) -> dict[str, int]:
        """How many events of each key are on their way by now."""
        return dict(self.counts)

    def finish(self) -> None:
        """Ends the stream with the bells, which close every window, and waits until the broker has everything."""
        self.stop()
        self._send(bells(max(each.time_ms for each in self.events)))
        assert self._producer.flush(FLUSH_SECONDS) == 0, "the broker did not take all events"
        assert not self.refused, self.refused

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            self._send(next(self._source) for _ in range(BATCH))

    def _send(self, records: Iterable[Sent]) -> None:
        for record in records:
            self._producer.produce(TOPIC, record.value, record.key, record.partition)
            if record.key is None:
                self.poison.append(record.value)
            else:
                self.events.append(record)
                self.counts[record.key] += 1
        self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.refused.append(error)
