"""The `tests:` of a job: what goes in, item by item, and which rows must come out of each sink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from tidemark.compiler.definition.model import Duration, Model, Text, Timestamp, problem

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One event, its columns as they would stand in the source."""

    values: Row


@dataclass(frozen=True)
class AdvanceWatermark:
    """Moves the watermark to an ISO-8601 time."""

    to: str


@dataclass(frozen=True)
class AdvanceTime:
    """Lets idle time pass."""

    by: str


@dataclass(frozen=True)
class Crash:
    """Kills the driver; the job recovers and goes on."""


@dataclass(frozen=True)
class EndEpoch:
    """Ends the epoch here."""


Item = Event | AdvanceWatermark | AdvanceTime | Crash | EndEpoch
_TIMESTAMP: TypeAdapter[str] = TypeAdapter(Timestamp)
_DURATION: TypeAdapter[str] = TypeAdapter(Duration)
# What an event may carry beside its columns: the record around it, or in their place the whole record.
RECORD_FIELDS = ("_raw", "_partition", "_event_time", "_key")
CONTROLS = ("advance_watermark", "advance_time", "crash", "epoch")


def control_of(row: Row) -> str | None:
    """The control item this is; a mapping with that single name is one, anything else is an event."""
    name = next(iter(row), None)
    return name if len(row) == 1 and name in CONTROLS else None


def item_of(row: Row) -> Item:
    match control_of(row):
        case "advance_watermark":
            return AdvanceWatermark(row["advance_watermark"])
        case "advance_time":
            return AdvanceTime(row["advance_time"])
        case "crash":
            return Crash()
        case "epoch":
            return EndEpoch()
        case _:
            return Event(row)


def _checked(row: Row) -> Row:
    control = control_of(row)
    if control in ("crash", "epoch") and row[control] is not True:
        raise problem("bad_value", f"`{control}` can only be true", f"Write `{{{control}: true}}`.")
    adapter = {"advance_watermark": _TIMESTAMP, "advance_time": _DURATION}.get(control or "")
    if adapter is not None and control is not None:
        _validated(adapter, row[control])
    return row


def _validated(adapter: TypeAdapter[str], value: object) -> None:
    """Passes on the error of a control item's value as the error of the item."""
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        found = error.errors()[0]
        raise PydanticCustomError(found["type"], "{message}", found["ctx"]) from None


class CaseDefinition(Model):
    """Expected rows are matched as a set, on the columns they name."""

    name: Text
    input: dict[str, list[Annotated[Row, AfterValidator(_checked)]]]
    expect: dict[str, list[Row]]

    def items(self, source: str) -> tuple[Item, ...]:
        return tuple(item_of(row) for row in self.input.get(source, ()))

    def events(self, source: str) -> Iterator[tuple[int, Row]]:
        """The events of a source with their index among its items."""
        for index, row in enumerate(self.input.get(source, ())):
            if control_of(row) is None:
                yield index, row
