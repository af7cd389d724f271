"""Random event sets with everything that makes time hard: disorder, duplicates, gaps, the far past and the future."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from support.oracle import Event

START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
FUTURE = 4_102_444_800_000  # 2100-01-01T00:00:00Z
KEYS = ("a", "b", "c", "d")


def wild_epochs(seed: int, epochs: int, events: int, partitions: int) -> list[list[Event]]:
    """Epochs that move on by about a minute each; a few events are bad, late by far, repeated or in the future."""
    chance = random.Random(seed)
    made: list[list[Event]] = []
    earlier: list[Event] = []
    for epoch in range(epochs):
        batch = [_event(chance, f"{seed}-{epoch}-{n}", epoch, partitions, earlier) for n in range(events)]
        earlier = [event for event in batch if not event.bad and not event.future]
        made.append(batch)
    return made


def _event(chance: random.Random, name: str, epoch: int, partitions: int, earlier: list[Event]) -> Event:
    kind = chance.random()
    if kind < 0.06 and earlier:
        return chance.choice(earlier)
    back = chance.randrange(600_000) if kind < 0.12 else chance.randrange(20_000)
    time = START + 600_000 + epoch * 60_000 + chance.randrange(60_000) - back
    return Event(
        id=name,
        time=FUTURE if 0.12 < kind < 0.14 else time,
        key=chance.choice(KEYS),
        value=chance.randrange(1, 1000) / 4,
        partition=chance.randrange(partitions),
        bad=0.14 < kind < 0.17,
        future=0.12 < kind < 0.14,
    )


def tame_events(seed: int, events: int, partitions: int, delay: int) -> list[Event]:
    """Events of one arrival order in which none is out of order by more than `delay` within its partition."""
    chance = random.Random(seed)
    newest = [START] * partitions
    made = []
    for number in range(events):
        partition = chance.randrange(partitions)
        newest[partition] = START + number * 1_500
        time = newest[partition] - chance.randrange(delay)
        made.append(Event(f"{seed}-{number}", time, chance.choice(KEYS), chance.randrange(100) / 4, partition))
    return made


def rearranged(events: list[Event], seed: int) -> list[Event]:
    """Another arrival order that keeps the order within each partition, so that nothing becomes late."""
    chance = random.Random(seed)
    queues: dict[int, list[Event]] = {}
    for event in events:
        queues.setdefault(event.partition, []).append(event)
    order = [partition for partition, queue in queues.items() for _ in queue]
    chance.shuffle(order)
    return [queues[partition].pop(0) for partition in order]


def record(event: Event) -> dict[str, Any]:
    """The event as the harness takes it."""
    if event.bad:
        return {"_raw": '{"id": "' + event.id, "_partition": event.partition}
    return {
        "id": event.id,
        "ts": datetime.fromtimestamp(event.time / 1000, UTC),
        "key": event.key,
        "value": event.value,
        "_partition": event.partition,
    }


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
