"""Values that sinks tend to spoil, with what a reader must see for each."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

HOSTILE_TEXTS = (
    "", " leading", "trailing ", "comma, semicolon;", 'quote " and \' apostrophe', '"', '\\"', "back\\slash\\",
    "line\nfeed", "carriage\rreturn", "both\r\n", "tab\t", "nul\0inside", "\0", "# comment", "null", "NULL", "NaN",
    "é ü 漢字 😀", "\u2028 separator", "\ufeffmark", "'); DROP TABLE t; --", "x" * 200_000,
)  # fmt: skip


_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_LONG_BINARY = bytes(range(256))
_LONG_DECIMAL = Decimal("-12345678901234567890.123456789012345678")
# column type → (value handed to Spark, value a reader sees)
TYPED_VALUES: tuple[tuple[str, Any, Any], ...] = (
    ("string", "text", "text"),
    ("int", -(2**31), -(2**31)),
    ("long", 2**63 - 1, 2**63 - 1),
    ("float", 0.5, 0.5),
    ("double", 1e-300, 1e-300),
    ("double", float("inf"), float("inf")),
    ("boolean", True, True),
    ("date", date(1969, 7, 20), "1969-07-20"),
    ("timestamp", _TIME, "2026-01-02T03:04:05Z"),
    ("timestamp", _TIME.replace(microsecond=120_000), "2026-01-02T03:04:05.120Z"),
    ("timestamp", datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), "1969-12-31T23:59:59.999999Z"),
    ("binary", _LONG_BINARY, base64.b64encode(_LONG_BINARY).decode()),
    ("decimal(38,18)", _LONG_DECIMAL, _LONG_DECIMAL),
    ("decimal(20,10)", Decimal("0.0000000100"), Decimal("0.00000001")),
    ("array<timestamp>", [_TIME, None], ["2026-01-02T03:04:05Z", None]),
    ("map<string,long>", {"a\"b": 1, "n": None}, {"a\"b": 1, "n": None}),
    ("map<date,binary>", {date(2026, 1, 2): b"\0\xff"}, {"2026-01-02": "AP8="}),
    ("struct<a:int,b:timestamp>", (None, _TIME), {"a": None, "b": "2026-01-02T03:04:05Z"}),
    ("array<struct<a:decimal(5,2),m:map<timestamp,boolean>>>", [(Decimal("1.50"), {_TIME: True})],
     [{"a": Decimal("1.50"), "m": {"2026-01-02T03:04:05Z": True}}]),
)  # fmt: skip
