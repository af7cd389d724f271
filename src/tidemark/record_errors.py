"""Why a record is refused: the codes that `<source>.errors` carries. Errors of a whole job are in errors.py."""

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
    RecordError.WRONG_TYPE: "A field is there but cannot be read as its type; the message names the field.",
    RecordError.MISSING_EVENT_TIME: "The column that `event_time` names is missing or null.",
    RecordError.MISSING_KEY: "The column that `key` names is missing or null.",
    RecordError.BAD_PARTITION: "The column that `partition` names is null or not from 0 to `partitions` - 1.",
    RecordError.FUTURE_EVENT: "The event's time is more than `max_future` after its ingestion.",
}
