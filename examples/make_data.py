"""Writes the input of the examples, the same bytes every time: `python examples/make_data.py [EXAMPLE] [FOLDER]`.

Without a name it writes all of them. What order files are read in is their modification time, so that is set too.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
Lines = list[str]


def iso(seconds: float) -> str:
    """A time so many seconds after the start."""
    moment = START + timedelta(milliseconds=round(seconds * 1000))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def millis(seconds: float) -> int:
    return round((START.timestamp() + seconds) * 1000)


def jsonl(rows: Iterable[Mapping[str, object]]) -> Lines:
    return [json.dumps(row) for row in rows]


def posts() -> dict[str, Lines]:
    """Twelve minutes of posts; `eclipse` goes from nothing to the top of the list after minute 5."""
    chance = random.Random(1)
    rows = []
    for number in range(420):
        at = number * 720 / 420 - chance.random() * 20
        weights = [9, 6, 5, 3, 2, 0 if at < 300 else 14]
        tags = chance.choices(["football", "music", "weather", "cooking", "chess", "eclipse"], weights, k=2)
        rows.append({"post": f"p{number}", "tags": sorted(set(tags)), "at": iso(at)})
    return {"in/posts.jsonl": jsonl(rows)}


def clicks() -> dict[str, Lines]:
    """Visits of 12 users over a day, out of order, with retries of the same click."""
    chance = random.Random(2)
    pages = ["/", "/search", "/product", "/product", "/cart", "/checkout"]
    rows = []
    for user in range(12):
        at = chance.random() * 3600
        for visit in range(chance.randint(1, 4)):
            for step in range(chance.randint(1, 9)):
                click = {"click": f"u{user}-{visit}-{step}", "user": f"u{user}", "page": chance.choice(pages)}
                rows.append((at + chance.random() * 60, {**click, "at": iso(at)}))
                if chance.random() < 0.1:
                    rows.append((at + 90, rows[-1][1]))
                at += 5 + chance.random() * 600
            at += 3600 * (1 + 4 * chance.random())
    return {"in/clicks.jsonl": jsonl(row for _, row in sorted(rows, key=lambda arrival: arrival[0]))}


def orders() -> dict[str, Lines]:
    """Six files of a minute each. Orders are up to 4 s out of order; some come minutes late, some are broken."""
    chance = random.Random(3)
    files: dict[str, Lines] = {}
    for minute in range(6):
        rows = [_order(chance, f"o{minute}-{number}", minute * 60 + number * 1.5) for number in range(40)]
        chance.shuffle(rows)
        lines = jsonl(rows)
        if minute >= 4:
            lines += jsonl(_order(chance, f"late{minute}-{number}", (minute - 3) * 60 + number) for number in range(3))
        if minute == 2:
            lines += ['{"order_id": "cut off', '{"order_id": "o2-x", "store": "s1", "amount": "a lot"}']
        if minute == 3:
            lines += ['{"order_id": "o3-x", "store": "s2", "user": "u1", "amount": 5.0}']
        files[f"in/orders-{minute}.jsonl"] = lines
    return files


def _order(chance: random.Random, order: str, at: float) -> dict[str, object]:
    amount = round(chance.uniform(-2, 60), 2)
    store, user = f"s{chance.randint(1, 3)}", f"u{chance.randint(1, 30)}"
    return {"order_id": order, "store": store, "user": user, "amount": amount, "ts": iso(at + chance.random() * 4)}


def requests() -> dict[str, Lines]:
    """Three minutes of a web server: people, one scraper that walks through the catalogue, one brute-force login."""
    chance = random.Random(4)
    rows = []
    for _ in range(600):
        page = chance.choice(["/", "/about", "/products/1", "/products/2", "/login"])
        rows.append((chance.random() * 180, f"10.0.0.{chance.randint(1, 40)}", page, 200))
    rows += [(60 + number * 0.2, "203.0.113.7", f"/products/{number}", 200) for number in range(150)]
    rows += [(120 + number * 0.25, "198.51.100.9", "/login", 401) for number in range(120)]
    rows.sort()
    lines = [f"{client},{path},{status},{iso(at)}" for at, client, path, status in rows]
    return {"in/requests.csv": ["client,path,status,at", *lines]}


def completions() -> dict[str, Lines]:
    """Five minutes of a serving cluster with two replicas; the large model slows down in the third minute."""
    chance = random.Random(5)
    rows = []
    for number in range(900):
        asked = number / 3
        model = "large" if chance.random() < 0.3 else "small"
        slow = 4 if model == "large" and 120 <= asked < 180 else 1
        wait = {"large": 0.2, "small": 0.05}[model] * (1 + 8 * chance.random() ** 4) * slow
        written = chance.randint(20, 400)
        finished = asked + wait + written / {"large": 40, "small": 120}[model]
        tenant = chance.choice(["acme", "acme", "globex", "initech"])
        row: dict[str, object] = {"request": f"r{number}", "replica": number % 2, "model": model, "tenant": tenant}
        times = {"asked_at": millis(asked), "first_token_at": millis(asked + wait), "finished_at": millis(finished)}
        row |= {"prompt_tokens": chance.randint(10, 2000), "output_tokens": written, **times}
        rows.append((finished, row))
    return {"in/completions.jsonl": jsonl(row for _, row in sorted(rows, key=lambda arrival: arrival[0]))}


def transactions() -> dict[str, Lines]:
    """Twenty minutes of card payments with three kinds of fraud in them, three late ones and three broken records."""
    chance = random.Random(6)
    payments = [
        (1200 * number / 360, f"card-{chance.randint(1, 24):02d}", chance.uniform(4, 90)) for number in range(360)
    ]
    payments += [(365 + number * 5, "card-07", chance.uniform(10, 30)) for number in range(9)]
    payments += [(600 + number * 80, "card-12", chance.uniform(380, 460)) for number in range(6)]
    payments += [(840 + number * 20, "card-19", 1.0 + number / 10) for number in range(4)] + [(930, "card-19", 899.0)]
    rows = [_payment(f"t{number}", *payment) for number, payment in enumerate(payments)]
    arrivals = sorted((at + chance.random() * 3, number) for number, (at, _, _) in enumerate(payments))
    lines = jsonl(rows[number] for _, number in arrivals)
    lines[150:150] = ['{"transaction": "t-cut", "card": "card-03", "amo']
    lines[200:200] = jsonl([{**rows[0], "transaction": "t-amount", "amount": "many"}])
    lines[250:250] = jsonl([{"transaction": "t-timeless", "card": "card-05", "amount": "12.00"}])
    late = [_payment(f"late-{number}", 245 + number * 9, f"card-{number + 3:02d}", 20 + number) for number in range(3)]
    return {"in/transactions.jsonl": lines + jsonl(late)}


def _payment(transaction: str, at: float, card: str, amount: float) -> dict[str, object]:
    return {"transaction": transaction, "card": card, "amount": f"{amount:.2f}", "at": iso(at)}


def activities() -> dict[str, Lines]:
    """Six minutes of what users do. Two come late, two cannot be read, one has a name that PostgreSQL cannot hold."""
    chance = random.Random(7)
    rows = [_activity(chance, f"a{number}", 0.72 * number) for number in range(500)]
    arrivals = sorted((0.72 * number + chance.random() * 4, number) for number in range(500))
    lines = jsonl(rows[number] for _, number in arrivals)
    lines[120:120] = ["not a record at all", json.dumps({"id": "a-timeless", "user": "u1", "action": "view"})]
    lines[300:300] = jsonl([{"id": "a-nul", "user": "u4", "action": "up\0load", "at": iso(210)}])
    late = [{"id": f"late-{number}", "user": "u9", "action": "view", "at": iso(30 + number)} for number in range(2)]
    return {"in/activities.jsonl": lines + jsonl(late)}


def _activity(chance: random.Random, id_: str, at: float) -> dict[str, object]:
    action = chance.choices(["view", "search", "like", "share", "buy"], [12, 6, 4, 2, 1])[0]
    return {"id": id_, "user": f"u{chance.randint(1, 40)}", "action": action, "at": iso(at)}


EXAMPLES: dict[str, Callable[[], dict[str, Lines]]] = {
    "trending-topics": posts,
    "user-sessions": clicks,
    "orders-per-minute": orders,
    "bot-detection": requests,
    "llm-serving": completions,
    "fraud-detection": transactions,
    "activity-counts": activities,
}


def write(name: str, folder: Path) -> None:
    """Writes the files of one example below `folder`; each is a second younger than the one before it."""
    for age, (path, lines) in enumerate(EXAMPLES[name]().items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.utime(target, (START.timestamp() + age, START.timestamp() + age))


if __name__ == "__main__":
    home = Path(__file__).parent
    for example in sys.argv[1:2] or EXAMPLES:
        write(example, Path(sys.argv[2]) if len(sys.argv) > 2 else home / example)
