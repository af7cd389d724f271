"""Makes the orders of the demonstration: files of JSON lines, the same for the same seed.

Most orders are a little out of order; some are sent twice, some come minutes or most of an hour late, some lines
are broken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

START = datetime(2026, 1, 5, 18, 0, tzinfo=UTC)
CATEGORIES = ("books", "garden", "games", "kitchen", "music", "shoes", "sports", "toys")
PRICES = dict(zip(CATEGORIES, (14, 35, 49, 60, 18, 85, 70, 25), strict=True))
MINUTES_PER_FILE = 10
SERVERS = 4


def write_orders(folder: Path, *, orders: int, minutes: int, seed: int = 1) -> int:
    """Writes `orders` orders made over `minutes` of event time, and returns the number of lines."""
    folder.mkdir(parents=True)
    random = Random(seed)
    files = minutes // MINUTES_PER_FILE
    per_file = orders // files
    lines = 0
    for number in range(files):
        path = folder / f"orders-{number:03}.jsonl"
        lines += _write(path, _lines(random, number * per_file, per_file, timedelta(minutes=minutes) / orders))
        written_at = (START + timedelta(minutes=(number + 1) * MINUTES_PER_FILE)).timestamp()
        os.utime(path, (written_at, written_at))
    return lines


def _write(path: Path, lines: Iterator[str]) -> int:
    written = list(lines)
    path.write_text("".join(f"{line}\n" for line in written), "utf-8")
    return len(written)


def _lines(random: Random, first: int, count: int, step: timedelta) -> Iterator[str]:
    for number in range(first, first + count):
        line = _order(random, number, START + number * step)
        chance = random.random()
        if chance < 0.001:
            yield _broken(random, line)
        else:
            yield line
        if chance > 0.99:
            yield line


def _order(random: Random, number: int, placed: datetime) -> str:
    category = CATEGORIES[int(len(CATEGORIES) * random.random() ** 1.5)]
    amount = round(PRICES[category] * random.lognormvariate(0, 0.5), 2)
    status = "paid" if random.random() < 0.9 else "open"
    ordered_at = (placed - _delay(random, placed)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return (
        f'{{"order_id": "o{number}", "server": {number % SERVERS}, "category": "{category}",'
        f' "buyer": "b{int(20_000 * random.random())}", "amount": {amount}, "status": "{status}",'
        f' "ordered_at": "{ordered_at}"}}'
    )


def _delay(random: Random, placed: datetime) -> timedelta:
    """How long the order was on its way; never to before the shop opened."""
    chance = random.random()
    if chance < 0.0004:
        delay = timedelta(minutes=random.uniform(45, 50))
    elif chance < 0.005:
        delay = timedelta(minutes=random.uniform(22, 28))
    elif chance < 0.3:
        delay = timedelta(seconds=random.uniform(0, 15))
    else:
        delay = timedelta(0)
    return min(delay, placed - START)


def _broken(random: Random, line: str) -> str:
    return random.choice(
        (
            line[: len(line) // 2],
            line.replace('"amount": ', '"amount": "about ').replace(', "status"', '", "status"'),
            line.replace('"ordered_at"', '"ordered"'),
        )
    )
