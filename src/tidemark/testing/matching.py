"""Expected rows against the rows of a sink: a set against a set, each row used once, on the columns given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.schema import Type
from tidemark.testing.values import same, shown, shown_row

Row = Mapping[str, Any]
_SHOWN_ROWS = 20


@dataclass(frozen=True)
class Comparison:
    """What is left when every row that fits has been used."""

    types: Mapping[str, Type]
    expected: Sequence[Row]
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]

    @property
    def equal(self) -> bool:
        return not self.missing and not self.unexpected

    def describe(self, sink: str) -> str:
        """What differs, in lines whose rows can be pasted into the test."""
        lines = [f"sink {sink}: missing rows: {len(self.missing)}, unexpected rows: {len(self.unexpected)}"]
        for row in self.missing[:_SHOWN_ROWS]:
            lines += [f"  missing:    {shown_row(row)}", *self._nearest(row)]
        lines += _rest(self.missing)
        lines += [f"  unexpected: {shown_row(self._of_interest(row))}" for row in self.unexpected[:_SHOWN_ROWS]]
        return "\n".join([*lines, *_rest(self.unexpected)])

    def _nearest(self, row: Row) -> list[str]:
        """The columns in which the likeliest counterpart differs; nothing when no column agrees."""
        nearest = min(self.unexpected, key=lambda other: len(self._differing(row, other)), default=None)
        differing = self._differing(row, nearest) if nearest is not None else []
        if nearest is None or len(differing) == len(row):
            return []
        return [f"    nearest:  {'; '.join(f'{name} is {shown(nearest[name])}' for name in differing)}"]

    def _differing(self, row: Row, other: Row) -> list[str]:
        return [name for name, value in row.items() if not same(value, other[name], self.types[name])]

    def _of_interest(self, row: Row) -> Row:
        """The columns that the test speaks of; all of them when it speaks of none."""
        named = {name for expected in self.expected for name in expected}
        return {name: value for name, value in row.items() if name in named or not named}


def compare(expected: Sequence[Row], actual: Sequence[Row], types: Mapping[str, Type]) -> Comparison:
    """Finds the largest pairing of rows that fit, so that a row with few columns never takes another's only match."""
    fits = [[index for index, row in enumerate(actual) if _fits(wanted, row, types)] for wanted in expected]
    taken: dict[int, int] = {}
    for number in range(len(expected)):
        _pair(number, fits, taken)
    paired = set(taken.values())
    return Comparison(
        types,
        expected,
        tuple(row for number, row in enumerate(expected) if number not in paired),
        tuple(row for index, row in enumerate(actual) if index not in taken),
    )


def _fits(wanted: Row, row: Row, types: Mapping[str, Type]) -> bool:
    return all(same(value, row[name], types[name]) for name, value in wanted.items())


def _pair(number: int, fits: Sequence[Sequence[int]], taken: dict[int, int]) -> bool:
    """Finds an actual row for an expected one, moving earlier pairs along a chain of rows where that frees one."""
    reached: dict[int, int] = {}
    pending = [number]
    while pending:
        current = pending.pop()
        for index in fits[current]:
            if index in reached:
                continue
            reached[index] = current
            if index not in taken:
                _shift(index, number, reached, taken)
                return True
            pending.append(taken[index])
    return False


def _shift(free: int, start: int, reached: Mapping[int, int], taken: dict[int, int]) -> None:
    """Gives the free row to the last of the chain, whose own row goes to the one before it, and so on."""
    own = {number: index for index, number in taken.items()}
    index = free
    while True:
        number = reached[index]
        taken[index] = number
        if number == start:
            return
        index = own[number]


def _rest(rows: Sequence[Row]) -> list[str]:
    return [f"  … and {len(rows) - _SHOWN_ROWS} more"] if len(rows) > _SHOWN_ROWS else []
