"""The events of the chaos job: what the n-th of them is, and what every prefix of a key adds up to.

Each key counts its events and has them in order of time, so any running total can be recomputed from its count alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

PARTITIONS = 3
STEP_MS = 20
HOUR_MS = 3_600_000
WINDOW_MS = 5_000
POISON_SHARE = 0.02
# The bell is ahead of every event by more than the watermark's delay and a window.
BELL_AHEAD_MS = 600_000
ORDINARY = tuple(f"k{number:02}" for number in range(12))
TARDY = tuple(f"t{number}" for number in range(3))
BELLS = tuple(f"bell{number}" for number in range(PARTITIONS))
KEYS = (*ORDINARY, *TARDY)
POISON = (
    b'{"key": "half %d',
    b'{"seq": "much %d"}',
    b"\xff\x00\xfe %d",
    b'{"key": "timeless %d"}',
    b"%d",
)


@dataclass(frozen=True)
class Sent:
    """One record for the source; `key` is None for bytes that are no event."""

    partition: int
    value: bytes
    key: str | None = None
    seq: int = 0
    time_ms: int = 0


def amount(key: str, seq: int) -> int:
    return (seq * 31 + sum(key.encode())) % 997 + 1


def partition_of(key: str) -> int:
    return (*KEYS, *BELLS).index(key) % PARTITIONS


def stream(seed: int, base_ms: int) -> Iterator[Sent]:
    """Endless and the same for the same seed. Time goes on by a step an event; some keys lag, some are an hour late."""
    chance = Random(seed)
    counts = dict.fromkeys(KEYS, 0)
    number = 0
    while True:
        number += 1
        if chance.random() < POISON_SHARE:
            yield Sent(chance.randrange(PARTITIONS), chance.choice(POISON) % number)
        key = chance.choice(KEYS)
        yield event(key, counts[key], base_ms + number * STEP_MS - lag_ms(key))
        counts[key] += 1


def lag_ms(key: str) -> int:
    """A lag of the key's own: neighbours are out of order, within the delay; the tardy are far beyond it."""
    return HOUR_MS if key in TARDY else ORDINARY.index(key) * 100


def bells(after_ms: int) -> list[Sent]:
    """One event for each partition that closes every window before it."""
    return [event(key, 0, after_ms + BELL_AHEAD_MS) for key in BELLS]


def event(key: str, seq: int, time_ms: int) -> Sent:
    row = {"key": key, "seq": seq, "amount": amount(key, seq), "ts": time_ms}
    return Sent(partition_of(key), json.dumps(row).encode(), key, seq, time_ms)


class Totals:
    """What the first n events of a key add up to."""

    def __init__(self) -> None:
        self._sums: dict[str, list[int]] = {}

    def of(self, key: str, count: int) -> int:
        sums = self._sums.setdefault(key, [0])
        while len(sums) <= count:
            sums.append(sums[-1] + amount(key, len(sums) - 1))
        return sums[count]
