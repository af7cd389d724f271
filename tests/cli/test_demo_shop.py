"""The demonstration's orders: the same every time, with each kind of trouble in them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

from tidemark.cli.demo.shop import MINUTES_PER_FILE, START, write_orders
from tidemark.compiler.compile import compile_job

ORDERS, MINUTES = 30_000, 60


def lines_of(folder: Path) -> list[str]:
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def order(line: str) -> dict[str, object] | None:
    """The order, if the line is one that the job's schema accepts."""
    try:
        fields: dict[str, object] = json.loads(line)
    except ValueError:
        return None
    return fields if "ordered_at" in fields and isinstance(fields["amount"], float) else None


def test_the_same_orders_every_time(tmp_path: Path) -> None:
    first = write_orders(tmp_path / "a", orders=ORDERS, minutes=MINUTES)
    write_orders(tmp_path / "b", orders=ORDERS, minutes=MINUTES)
    write_orders(tmp_path / "c", orders=ORDERS, minutes=MINUTES, seed=2)
    assert len(lines_of(tmp_path / "a")) == first
    assert lines_of(tmp_path / "a") == lines_of(tmp_path / "b") != lines_of(tmp_path / "c")


def test_files_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", orders=ORDERS, minutes=MINUTES)
    by_time = sorted((tmp_path / "in").iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in by_time] == sorted(path.name for path in by_time)
    assert len({int(path.stat().st_mtime) for path in by_time}) == MINUTES // MINUTES_PER_FILE


def test_every_kind_of_trouble_is_there(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", orders=ORDERS, minutes=MINUTES)
    late: Counter[str] = Counter()
    for number, path in enumerate(sorted((tmp_path / "in").iterdir())):
        written = START + timedelta(minutes=number * MINUTES_PER_FILE)
        for fields in map(order, path.read_text().splitlines()):
            if fields is None:
                late["broken"] += 1
                continue
            behind = written - datetime.fromisoformat(str(fields["ordered_at"]))
            assert behind > timedelta(minutes=-MINUTES_PER_FILE)
            late["late"] += timedelta(minutes=11) < behind < timedelta(minutes=29)
            late["very late"] += behind > timedelta(minutes=34)
    ids = Counter(fields["order_id"] for fields in map(order, lines_of(tmp_path / "in")) if fields)
    assert 10 < late["broken"] < 60
    assert late["late"] > 50
    assert late["very late"] > 0
    assert sum(1 for times in ids.values() if times == 2) > 200


def test_the_demo_job_has_every_side_port_connected() -> None:
    compiled = compile_job(files("tidemark.cli.demo").joinpath("job.yaml").read_text("utf-8"))
    assert compiled.warnings == ()
    assert {sink.input for sink in compiled.plan.sinks.values()} == {
        "per_minute",
        "per_minute.late",
        "once.late",
        "orders.errors",
    }
