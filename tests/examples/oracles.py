"""What the examples must put out, computed by DuckDB over the same files: exact aggregates only, nothing of Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

Row = dict[str, Any]

TRENDS = """
    WITH topics AS (
        SELECT post, unnest(tags) AS topic, "at"
        FROM read_json('{folder}/in/*.jsonl', columns = {{post: 'VARCHAR', tags: 'VARCHAR[]', "at": 'TIMESTAMP'}})
    ), assigned AS (
        SELECT post, topic, time_bucket(INTERVAL 30 SECOND, "at") - k * INTERVAL 30 SECOND AS window_start
        FROM topics, range(10) AS slots(k)
    )
"""
COUNTS_PER_TOPIC = f"""{TRENDS}
    SELECT topic, window_start, window_start + INTERVAL 5 MINUTE AS window_end,
           count(*) AS mentions, count(DISTINCT post) AS posts
    FROM assigned GROUP BY ALL
"""
TOTALS_PER_WINDOW = f"""{TRENDS}
    SELECT window_start, window_start + INTERVAL 5 MINUTE AS window_end, count(*) AS mentions
    FROM assigned GROUP BY ALL
"""
SESSIONS = """
    WITH clicks AS (
        SELECT DISTINCT click, user, page, "at"
        FROM read_json('{folder}/in/*.jsonl',
                       columns = {{click: 'VARCHAR', user: 'VARCHAR', page: 'VARCHAR', "at": 'TIMESTAMP'}})
    ), begun AS (
        SELECT *, coalesce("at" - lag("at") OVER (PARTITION BY user ORDER BY "at") > INTERVAL 30 MINUTE, true)
               AS begins
        FROM clicks
    ), numbered AS (
        SELECT *, sum(begins::INT) OVER (PARTITION BY user ORDER BY "at") AS visit FROM begun
    )
    SELECT user, min("at") AS window_start, max("at") + INTERVAL 30 MINUTE AS window_end, count(*) AS clicks,
           first(page ORDER BY "at") AS entry, last(page ORDER BY "at") AS exit, list(page ORDER BY "at") AS pages,
           floor(epoch(max("at") - min("at")))::BIGINT AS seconds, bool_or(page = '/checkout') AS bought
    FROM numbered GROUP BY user, visit
"""
ORDERS = """
    WITH orders AS (
        SELECT json_extract_string(line, '$.order_id') AS order_id, json_extract_string(line, '$.store') AS store,
               json_extract_string(line, '$.user') AS buyer, (line ->> '$.amount')::DOUBLE AS amount,
               (line ->> '$.ts')::TIMESTAMP AS ts
        FROM (SELECT column0 AS line FROM read_csv('{folder}/in/*.jsonl', header = false, delim = '\x01', quote = '',
                                                   escape = '', columns = {{column0: 'VARCHAR'}}))
        WHERE json_valid(line) AND (line ->> '$.ts') IS NOT NULL
    )
"""
ORDERS_PER_MINUTE = f"""{ORDERS}
    SELECT store, time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
           time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
           count(*) AS orders, sum(amount) AS revenue
    FROM orders WHERE amount > 0 AND order_id NOT LIKE 'late%' GROUP BY ALL
"""
LATE_ORDERS = f"""{ORDERS}
    SELECT order_id, store, buyer AS user, amount, ts,
           time_bucket(INTERVAL 1 MINUTE, ts) AS window_start FROM orders WHERE amount > 0 AND order_id LIKE 'late%'
"""
BOTS = """
    SELECT client, time_bucket(INTERVAL 10 SECOND, "at") AS window_start,
           time_bucket(INTERVAL 10 SECOND, "at") + INTERVAL 10 SECOND AS window_end, count(*) AS requests,
           count(DISTINCT path) AS paths, count(*) FILTER (status = 401) AS refused,
           if(refused > requests / 2, 'password guessing', 'scraping') AS kind
    FROM read_csv('{folder}/in/*.csv', header = true,
                  columns = {{client: 'VARCHAR', path: 'VARCHAR', status: 'INT', "at": 'TIMESTAMP'}})
    GROUP BY client, window_start, window_end HAVING count(*) > 20
"""
COMPLETIONS = """
    WITH completions AS (
        SELECT *, first_token_at - asked_at AS ttft,
               time_bucket(INTERVAL 1 MINUTE, make_timestamp(finished_at * 1000)) AS window_start
        FROM read_json('{folder}/in/*.jsonl')
    )
"""
LATENCY = f"""{COMPLETIONS}
    SELECT model, window_start, window_start + INTERVAL 1 MINUTE AS window_end, count(*) AS requests,
           arg_max(request, ttft) AS slowest
    FROM completions GROUP BY ALL
"""
TTFT = f"{COMPLETIONS} SELECT model, window_start, list(ttft ORDER BY ttft) AS waits FROM completions GROUP BY ALL"
USAGE = f"""{COMPLETIONS}
    SELECT tenant, window_start, window_start + INTERVAL 1 MINUTE AS window_end, count(*) AS requests,
           sum(prompt_tokens)::BIGINT AS tokens_in, sum(output_tokens)::BIGINT AS tokens_out,
           round((tokens_in + tokens_out) / 60, 1) AS tokens_per_second
    FROM completions GROUP BY ALL
"""
RECORDS = """
    SELECT line::JSON AS line
    FROM read_csv('{folder}/in/*.jsonl', header = false, delim = '\x01', quote = '', escape = '',
                  columns = {{line: 'VARCHAR'}})
    WHERE json_valid(line)
"""
PAYMENTS = f"""
    WITH payments AS (
        SELECT line ->> '$.transaction' AS transaction, line ->> '$.card' AS card,
               (line ->> '$.amount')::DECIMAL(8, 2) AS amount, (line ->> '$.at')::TIMESTAMP AS "at",
               line ->> '$.transaction' LIKE 'late%' AS late
        FROM ({RECORDS})
        WHERE TRY_CAST(line ->> '$.amount' AS DECIMAL(8, 2)) IS NOT NULL AND (line ->> '$.at') IS NOT NULL
    ), in_minutes AS (
        SELECT *, time_bucket(INTERVAL 1 MINUTE, "at") AS window_start, window_start + INTERVAL 1 MINUTE AS window_end
        FROM payments
    ), in_ten_minutes AS (
        SELECT *, time_bucket(INTERVAL 5 MINUTE, "at") - k * INTERVAL 5 MINUTE AS window_start,
               window_start + INTERVAL 10 MINUTE AS window_end
        FROM payments, range(2) AS slots(k)
    )
"""
ALERTS = f"""{PAYMENTS}, begun AS (
        SELECT *, coalesce("at" - lag("at") OVER (PARTITION BY card ORDER BY "at") > INTERVAL 1 MINUTE, true) AS begins
        FROM payments WHERE NOT late
    ), in_visits AS (
        SELECT *, sum(begins::INT) OVER (PARTITION BY card ORDER BY "at") AS visit FROM begun
    )
    SELECT card, 'more than 5 payments in a minute' AS rule, window_start, window_end,
           count(*) AS transactions, sum(amount)::DOUBLE AS total
    FROM in_minutes WHERE NOT late GROUP BY ALL HAVING count(*) > 5
    UNION ALL
    SELECT card, 'more than 2000 in ten minutes', window_start, window_end, count(*), sum(amount)::DOUBLE
    FROM in_ten_minutes WHERE NOT late GROUP BY ALL HAVING sum(amount) > 2000
    UNION ALL
    SELECT card, 'a large payment after small ones', min("at"), max("at") + INTERVAL 1 MINUTE,
           count(*), sum(amount)::DOUBLE
    FROM in_visits GROUP BY card, visit HAVING count(*) FILTER (amount < 2) >= 3 AND arg_max(amount, "at") > 300
"""
# The epoch before the one with the late payments ran with a watermark between 12:05 and 12:10.
LATE_PAYMENTS = f"""{PAYMENTS}
    SELECT transaction, card, amount::DOUBLE AS amount, "at", window_start, window_end
    FROM (
        FROM in_minutes UNION ALL FROM (SELECT * EXCLUDE k FROM in_ten_minutes)
        UNION ALL SELECT *, "at", "at" + INTERVAL 1 MINUTE FROM payments
    )
    WHERE late AND window_end < TIMESTAMP '2026-01-01 12:06:00'
"""
ACTIVITIES = f"""
    WITH activities AS (
        SELECT line ->> '$.id' AS id, line ->> '$.user' AS person, line ->> '$.action' AS action,
               (line ->> '$.at')::TIMESTAMP AS "at", time_bucket(INTERVAL 1 MINUTE, "at") AS window_start,
               window_start + INTERVAL 1 MINUTE AS window_end
        FROM ({RECORDS})
        WHERE (line ->> '$.at') IS NOT NULL
    )
"""
ACTIVITIES_PER_MINUTE = f"""{ACTIVITIES}
    SELECT action, window_start, window_end, count(*) AS activities, count(DISTINCT person) AS users
    FROM activities WHERE id NOT LIKE 'late%' AND id != 'a-nul' GROUP BY ALL
"""
LATE_ACTIVITIES = f"""{ACTIVITIES}
    SELECT id, person AS user, action, "at", window_start, window_end FROM activities WHERE id LIKE 'late%'
"""
REFUSED_ACTIVITIES = f"""{ACTIVITIES}
    SELECT window_start, window_end, count(*) AS activities, count(DISTINCT person) AS users
    FROM activities WHERE id = 'a-nul' GROUP BY ALL
"""


def compute(query: str, folder: Path) -> list[Row]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(query.format(folder=folder))
        names = [column[0] for column in found.description]
        return [dict(zip(names, map(plain, row), strict=True)) for row in found.fetchall()]


def plain(value: object) -> object:
    """Times as the sinks write them."""
    if not isinstance(value, datetime):
        return value
    micros = value.microsecond
    timespec = "seconds" if micros == 0 else "milliseconds" if micros % 1000 == 0 else "microseconds"
    return value.replace(tzinfo=UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
