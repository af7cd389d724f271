"""The kinds of windows: how a definition writes them and what each needs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator

from tidemark.compiler.definition.model import Duration, Model, PositiveDuration, check_positive_duration, milliseconds
from tidemark.compiler.graph.checker import Checker
from tidemark.compiler.plan.plan import SessionWindow, SlidingWindow, TumblingWindow, WindowSpec

KINDS = ("tumbling", "sliding", "session")
KINDS_TO_COME = ("count", "global", "cumulative")
HINT = "Write `{tumbling: 1m}`, `{sliding: 10m, every: 1m}` or `{session: 30m}`."


def _every(value: object) -> object:
    """A duration; a count window, still to come, has a number here."""
    return value if type(value) is int else check_positive_duration(value)


Every = Annotated[str | int | None, PlainValidator(_every)]


class WindowDefinition(Model):
    tumbling: PositiveDuration | None = None
    sliding: PositiveDuration | None = None
    session: PositiveDuration | None = None
    every: Every = None
    offset: Duration | None = None
    count: Any = None
    everything: Any = Field(None, alias="global")
    cumulative: Any = None


def read_window(window: WindowDefinition, checker: Checker) -> WindowSpec | None:
    """The window, once exactly one kind is named and its fields fit; else None, and the reason is reported."""
    to_come = [name for name in KINDS_TO_COME if _given(window, name)]
    if to_come:
        checker.not_available(f"a {to_come[0]} window", "window", to_come[0], hint=HINT)
        return None
    kinds = [name for name in KINDS if getattr(window, name) is not None]
    if len(kinds) != 1:
        found = "names no kind" if not kinds else f"names {' and '.join(kinds)}"
        checker.refuse("bad_window", f"a window is of exactly one kind, and this one {found}", HINT, "window")
        return None
    _refuse_strangers(window, kinds[0], checker)
    return None if checker.failed() else _READERS[kinds[0]](window, checker)


def _given(window: WindowDefinition, name: str) -> bool:
    return {"global": "everything"}.get(name, name) in window.model_fields_set


def _refuse_strangers(window: WindowDefinition, kind: str, checker: Checker) -> None:
    allowed = {"tumbling": ("offset",), "sliding": ("every", "offset"), "session": ()}[kind]
    for name in ("every", "offset"):
        if getattr(window, name) is not None and name not in allowed:
            checker.refuse("bad_window", f"a {kind} window has no `{name}`", HINT, "window", name)


def _tumbling(window: WindowDefinition, checker: Checker) -> WindowSpec | None:
    size = milliseconds(window.tumbling or "")
    offset = _offset(window, size, checker)
    return None if checker.failed() else TumblingWindow(size_ms=size, offset_ms=offset)


def _sliding(window: WindowDefinition, checker: Checker) -> WindowSpec | None:
    if not isinstance(window.every, str):
        checker.refuse("bad_window", "a sliding window needs `every`, a duration", HINT, "window")
        return None
    size, every = milliseconds(window.sliding or ""), milliseconds(window.every)
    if every > size:
        message = f"a window of {window.sliding} every {window.every} would leave gaps"
        checker.refuse("bad_window", message, "Make `every` at most as long as the window.", "window", "every")
    offset = _offset(window, every, checker)
    return None if checker.failed() else SlidingWindow(size_ms=size, every_ms=every, offset_ms=offset)


def _session(window: WindowDefinition, checker: Checker) -> WindowSpec | None:
    return SessionWindow(gap_ms=milliseconds(window.session or ""))


def _offset(window: WindowDefinition, step: int, checker: Checker) -> int:
    offset = milliseconds(window.offset or "0s")
    if offset >= step:
        hint = "Windows repeat, so an offset is smaller than the step from one to the next."
        checker.refuse("bad_window", f"an offset of {window.offset} is too long", hint, "window", "offset")
    return offset


_READERS = {"tumbling": _tumbling, "sliding": _sliding, "session": _session}
