"""Cursors: opaque to clients, the place of the last item to us."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query

from tidemark.errors import RequestRefused

Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before.")]


def cursor(*place: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def place_of_job(text: str | None) -> tuple[datetime, str] | None:
    if text is None:
        return None
    match _read(text):
        case [str() as at, str() as job_id]:
            return _moment(at), job_id
    raise _bad()


def place_of_row(text: str | None) -> int | None:
    if text is None:
        return None
    match _read(text):
        case [int() as row] if 0 <= row < 2**53:
            return row
    raise _bad()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _bad() from None
    if moment.tzinfo is None:
        raise _bad()
    return moment


def _read(text: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise _bad() from None


def _bad() -> RequestRefused:
    return RequestRefused("the cursor is not one of this server's", hint="take it from `next_cursor` as it is")
