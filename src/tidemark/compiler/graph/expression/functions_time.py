"""Functions of dates and timestamps. The session's time zone is UTC."""

from __future__ import annotations

from tidemark.compiler.graph.expression.function_rules import (
    DATE_ONLY,
    DAY,
    DAY_AS_MOMENT,
    INTEGER,
    MOMENT,
    MONTHS,
    READ_FORMAT,
    READABLE_TIME,
    WHOLE,
    WRITE_FORMAT,
    Function,
    one_of,
    optional,
    time_text,
    word,
)
from tidemark.compiler.graph.expression.literals import MICROSECONDS, moved_days
from tidemark.schema import DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP

UNIT = word(
    "a unit of time: " + ", ".join(MICROSECONDS).lower(),
    tuple((unit, f"{microseconds}L") for unit, microseconds in MICROSECONDS.items()),
)
CALENDAR_UNITS = ("week", "month", "quarter", "year")
TRUNCATED = one_of("microsecond", "millisecond", "second", "minute", "hour", "day", *CALENDAR_UNITS)
TRUNCATED_DAY = one_of(*CALENDAR_UNITS)
WEEKDAY = one_of("mon", "tue", "wed", "thu", "fri", "sat", "sun")

TIME_FUNCTIONS: tuple[Function, ...] = (
    Function("add_months", (DAY, MONTHS), DATE, "a date some months later", "add_months(day, 1)"),
    Function("date", (READABLE_TIME,), time_text(DATE), "as a date", "date(at)"),
    Function(
        "date_add", (DAY, INTEGER), DATE, "a date some days later", "date_add(day, n)", sql=moved_days("date_add")
    ),
    Function(
        "date_format",
        (DAY_AS_MOMENT, WRITE_FORMAT),
        STRING,
        "written in a format",
        "date_format(at, 'yyyy-MM-dd HH:mm')",
    ),
    Function(
        "date_from_unix_date",
        (INTEGER,),
        DATE,
        "days since 1970 as a date; null for ten million and more",
        "date_from_unix_date(n)",
        sql="date_from_unix_date(CAST(CAST({0} AS DECIMAL(7,0)) AS INT))",
    ),
    Function(
        "date_sub", (DAY, INTEGER), DATE, "a date some days earlier", "date_sub(day, n)", sql=moved_days("date_sub")
    ),
    Function("date_trunc", (TRUNCATED, DAY_AS_MOMENT), TIMESTAMP, "the start of the unit", "date_trunc('hour', at)"),
    Function("datediff", (DAY, DAY), INT, "days from the second to the first", "datediff(at, day)"),
    Function("day", (DAY,), INT, "day of the month", "day(at)"),
    Function("dayname", (DAY,), STRING, "name of the day, such as Mon", "dayname(at)"),
    Function("dayofmonth", (DAY,), INT, "day of the month", "dayofmonth(at)"),
    Function("dayofweek", (DAY,), INT, "1 for Sunday to 7 for Saturday", "dayofweek(at)"),
    Function("dayofyear", (DAY,), INT, "day of the year", "dayofyear(day)"),
    Function("from_unixtime", (WHOLE, optional(WRITE_FORMAT)), STRING, "epoch seconds as text", "from_unixtime(big)"),
    Function("hour", (DAY_AS_MOMENT,), INT, "hour of the day", "hour(at)"),
    Function("last_day", (DAY,), DATE, "last day of the month", "last_day(day)"),
    Function(
        "make_date",
        (INTEGER, INTEGER, INTEGER),
        DATE,
        "from year, month and day; null if there is no such day up to the year 9999",
        "make_date(2026, n, 1)",
        sql="make_date(CAST(CAST({0} AS DECIMAL(4,0)) AS INT), {1}, {2})",
    ),
    Function("minute", (DAY_AS_MOMENT,), INT, "minute of the hour", "minute(at)"),
    Function("month", (DAY,), INT, "month of the year", "month(at)"),
    Function("monthname", (DAY,), STRING, "name of the month, such as Jan", "monthname(at)"),
    Function(
        "months_between",
        (DAY_AS_MOMENT, DAY_AS_MOMENT),
        DOUBLE,
        "months from the second to the first",
        "months_between(at, day)",
    ),
    Function("next_day", (DAY, WEEKDAY), DATE, "the next such weekday", "next_day(day, 'mon')"),
    Function("quarter", (DAY,), INT, "quarter of the year", "quarter(at)"),
    Function("second", (DAY_AS_MOMENT,), INT, "second of the minute", "second(at)"),
    Function("timestamp_micros", (WHOLE,), TIMESTAMP, "epoch microseconds as a timestamp", "timestamp_micros(big)"),
    Function(
        "timestamp_millis",
        (WHOLE,),
        TIMESTAMP,
        "epoch milliseconds as a timestamp; null out of range",
        "timestamp_millis(big)",
        sql="timestamp_micros(try_multiply(CAST({0} AS BIGINT), 1000L))",
    ),
    Function(
        "timestamp_seconds",
        (WHOLE,),
        TIMESTAMP,
        "epoch seconds as a timestamp; null out of range",
        "timestamp_seconds(big)",
        sql="timestamp_micros(try_multiply(CAST({0} AS BIGINT), 1000000L))",
    ),
    Function(
        "timestampadd",
        (UNIT, WHOLE, MOMENT),
        TIMESTAMP,
        "a timestamp some units later; null out of range",
        "timestampadd(minute, n, at)",
        sql="timestamp_micros(try_add(unix_micros({2}), try_multiply(CAST({1} AS BIGINT), {0})))",
    ),
    Function(
        "timestampdiff",
        (UNIT, MOMENT, MOMENT),
        LONG,
        "whole units from the first to the second",
        "timestampdiff(second, at, until)",
        sql="(try_subtract(unix_micros({2}), unix_micros({1})) DIV {0})",
    ),
    Function(
        "to_date",
        (READABLE_TIME, optional(READ_FORMAT)),
        time_text(DATE),
        "as a date; null if it is none",
        "to_date(name, 'dd.MM.yyyy')",
    ),
    Function(
        "to_timestamp",
        (READABLE_TIME, optional(READ_FORMAT)),
        time_text(TIMESTAMP),
        "as a timestamp; null if it is none",
        "to_timestamp(name)",
    ),
    Function("trunc", (DAY, TRUNCATED_DAY), DATE, "first day of the unit", "trunc(day, 'month')"),
    Function("unix_date", (DATE_ONLY,), INT, "days since 1970", "unix_date(day)"),
    Function("unix_micros", (MOMENT,), LONG, "epoch microseconds", "unix_micros(at)"),
    Function("unix_millis", (MOMENT,), LONG, "epoch milliseconds", "unix_millis(at)"),
    Function("unix_seconds", (MOMENT,), LONG, "epoch seconds", "unix_seconds(at)"),
    Function("unix_timestamp", (DAY_AS_MOMENT,), LONG, "epoch seconds", "unix_timestamp(day)"),
    Function("weekday", (DAY,), INT, "0 for Monday to 6 for Sunday", "weekday(at)"),
    Function("weekofyear", (DAY,), INT, "ISO week of the year", "weekofyear(at)"),
    Function("year", (DAY,), INT, "year", "year(at)"),
)
