"""What all parts of a definition share: strict frozen models, and the small types their fields are made of.

Values stay as they were written (`1m`, not 60000), so that a definition goes round without loss.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)", re.ASCII)
_ID = re.compile(r"[a-z][a-z0-9_]{0,62}")
_JOB_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
MAX_DURATION_MS = 36_500 * _UNITS["d"]
DURATION_HINT = "A duration is a whole number and a unit, such as 250ms, 5s, 1m, 2h or 7d."


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with what was written and nothing that was not."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def problem(code: str, message: str, hint: str) -> PydanticCustomError:
    """An error that a field's own check raises; braces in the text are harmless."""
    return PydanticCustomError(code, "{message}", {"message": message, "hint": hint})


def milliseconds(duration: str) -> int:
    """The length of a duration that has been checked."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError(f"{duration!r} is not a duration")
    return int(match[1]) * _UNITS[match[2]]


def instant(text: str) -> datetime:
    """An ISO-8601 time; without a zone it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def check_duration(value: object) -> str:
    if not isinstance(value, str) or len(value) > 20 or not _DURATION.fullmatch(value):
        raise problem("bad_duration", f"`{_brief(value)}` is not a duration", DURATION_HINT)
    if milliseconds(value) > MAX_DURATION_MS:
        raise problem("bad_duration", f"`{value}` is longer than 100 years", "Choose a shorter duration.")
    return value


def check_positive_duration(value: object) -> str:
    return _above_zero(check_duration(value))


def _above_zero(value: str) -> str:
    if milliseconds(value) == 0:
        raise problem("bad_duration", f"`{value}` must be longer than zero", "Choose a duration such as 1s.")
    return value


def _instant(value: object) -> object:
    try:
        instant(value if isinstance(value, str) else "")
    except (ValueError, OverflowError):
        hint = "Write it as ISO-8601, such as 2026-01-01T00:00:00Z."
        raise problem("bad_timestamp", f"`{_brief(value)}` is not a time", hint) from None
    return value


def _id(value: str) -> str:
    if not _ID.fullmatch(value):
        hint = "An id begins with a small letter, then has small letters, digits or _, 63 characters at most."
        raise problem("bad_id", f"`{_brief(value)}` cannot be an id", hint)
    return value


def _job_name(value: str) -> str:
    if not _JOB_NAME.fullmatch(value):
        hint = "A name has small letters, digits, - or _, 63 characters at most."
        raise problem("bad_id", f"`{_brief(value)}` cannot be the name of a job", hint)
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise problem("bad_value", "this must not be empty", "Write something here, or leave the field out.")
    return value


def _key(value: object) -> object:
    """A list of column names, or expressions by name."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item for item in value):
        return list(value)
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return value
    hint = "Write `key: [column]`, or `key: {name: expression}`."
    raise problem("wrong_type", "a key is a list of columns or a mapping of names to expressions", hint)


def _brief(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


Id = Annotated[str, AfterValidator(_id)]
JobName = Annotated[str, AfterValidator(_job_name)]
Text = Annotated[str, AfterValidator(_text)]
Duration = Annotated[str, BeforeValidator(check_duration)]
PositiveDuration = Annotated[Duration, AfterValidator(_above_zero)]
Timestamp = Annotated[str, BeforeValidator(_instant)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
Key = Annotated[list[str] | dict[str, str], PlainValidator(_key)]
