"""Why one record or row is refused: the codes that `<source>.errors` and `<sink>.errors` carry.

Errors of a whole job are in errors.py.
"""

from __future__ import annotations

from enum import StrEnum


class RecordError(StrEnum):
    """MEANINGS has a line for each."""

    MISSING_VALUE = "missing_value"
    INVALID_UTF8 = "invalid_utf8"
    BAD_JSON = "bad_json"
    WRONG_TYPE = "wrong_type"
    MISSING_EVENT_TIME = "missing_event_time"
    MISSING_KEY = "missing_key"
    BAD_PARTITION = "bad_partition"
    FUTURE_EVENT = "future_event"


MEANINGS: dict[RecordError, str] = {
    RecordError.MISSING_VALUE: "The record has a key but no value: a tombstone of Kafka.",
    RecordError.INVALID_UTF8: "The bytes of the record are not UTF-8.",
    RecordError.BAD_JSON: "The record is not exactly one JSON object.",
    RecordError.WRONG_TYPE: "A field is there but cannot be read as its type, as a decimal with an exponent of four "
    "digits or more; the message names the field.",
    RecordError.MISSING_EVENT_TIME: "The column that `event_time` names is missing or null.",
    RecordError.MISSING_KEY: "The column that `key` names is missing or null.",
    RecordError.BAD_PARTITION: "The column that `partition` names is null or not from 0 to `partitions` - 1.",
    RecordError.FUTURE_EVENT: "The event's time is more than `max_future` after its ingestion.",
}


class RowError(StrEnum):
    """ROW_MEANINGS has a line for each."""

    NOT_NULL = "not_null"
    CHECK = "check_failed"
    NOT_UNIQUE = "not_unique"
    FOREIGN_KEY = "foreign_key"
    OUT_OF_RANGE = "out_of_range"
    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"
    BAD_TEXT = "bad_text"
    BAD_VALUE = "bad_value"
    REFUSED = "refused"


ROW_MEANINGS: dict[RowError, str] = {
    RowError.NOT_NULL: "A value is null and its column must not be.",
    RowError.CHECK: "A constraint of the table does not hold, or no partition of it takes the row.",
    RowError.NOT_UNIQUE: "The table has a row with the same unique value already.",
    RowError.FOREIGN_KEY: "The row that a foreign key points to is not there.",
    RowError.OUT_OF_RANGE: "A number or a time does not fit its column.",
    RowError.TOO_LONG: "A text is longer than its column or an index over it allows.",
    RowError.TOO_LARGE: "The record is larger than the topic takes.",
    RowError.BAD_TEXT: "A text holds a character that the database cannot store, such as NUL, or is not UTF-8.",
    RowError.BAD_VALUE: "A value cannot be read as the type of its column.",
    RowError.REFUSED: "A trigger or a policy of the database refuses the row.",
}
