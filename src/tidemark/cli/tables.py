"""Plain tables for people: columns as wide as their values, nothing that a terminal could cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any


def show(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Text is set left, numbers right; a table without rows is its head."""
    rows = list(rows)
    body = [[show(value) for value in row] for row in rows]
    widths = [max(len(line[place]) for line in [list(head), *body]) for place in range(len(head))]
    right = [bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(head))]
    for line in ([name.upper() for name in head], *body):
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def put(answer: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """The answer as JSON, or as the lines made of it."""
    print(json.dumps(answer, indent=2) if as_json else "\n".join(lines))


def moment(at: datetime | None) -> str | None:
    """To the second, in UTC."""
    return None if at is None else at.isoformat(timespec="seconds").replace("+00:00", "Z")
