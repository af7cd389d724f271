"""What an epoch is read in trust of, to be quick, and what is looked at before anything of it is committed.

That every line is flat JSON, so that Spark's own reader can be used; and that no event is too far ahead of its
ingestion, so that the time of the epoch does not stand in the plan: Spark would compile its code anew for every epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tidemark.data_plane.checkpoint import Note

# How many lines an epoch has, by source; None when one of them is not what was trusted in.
Lines = Mapping[str, int] | None


class Outgrown(Exception):
    """The epoch has partitions, lines or times that the query was not built for; nothing of it is committed."""


class Trust:
    """`remember` makes it known, for good, what the query has to be built for."""

    def __init__(self, remember: Callable[[Note], None]) -> None:
        self._remember = remember
        self._flat: Callable[[], Lines] | None = None
        self._lines: Lines = {}
        self._in_time: Callable[[], bool] | None = None

    @contextmanager
    def during(self, flat: Callable[[], Lines] | None, in_time: Callable[[], bool] | None) -> Iterator[None]:
        """Both are asked at most once, and not before the epoch has been computed: it needs the processor for itself.

        What goes wrong with an epoch that was read the wrong way means nothing.
        """
        self._flat, self._lines, self._in_time = flat, {}, in_time
        try:
            yield
        finally:
            self.settle()

    def settle(self) -> None:
        """Raises Outgrown when one of the answers is no."""
        self.lines()
        if self._in_time is not None and not self._in_time():
            self._remember(Note.EVENTS_AHEAD)
            raise Outgrown
        self._in_time = None

    def lines(self) -> Mapping[str, int]:
        """Of the sources whose lines are looked at; raises Outgrown as `settle` does."""
        if self._flat is not None:
            self._lines = self._flat()
            self._flat = None
        if self._lines is None:
            self._remember(Note.LINES_TO_DECODE)
            raise Outgrown
        return self._lines
