"""The chaos job: one Kafka topic, three terminal operators, each into Kafka and PostgreSQL, and two side ports.

The tables note which session wrote each row, and every version of the running totals, so that nothing that was ever
committed can hide.
"""

from __future__ import annotations

from faults.chaos.events import WINDOW_MS
from faults.workload import NAME

TOPIC = "events"
QUERIES = ("totals", "windows", "numbered")
# By sink: the topic that it writes.
TOPICS = {"totals_topic": "totals", "windows_topic": "windows", "late": "late", "log_topic": "log"}
TABLES = {"totals_table": "totals", "windows_table": "windows", "bad": "bad", "log_table": "log"}
QUERY_OF = {
    "totals_topic": "totals",
    "totals_table": "totals",
    "bad": "totals",
    "windows_topic": "windows",
    "windows_table": "windows",
    "late": "windows",
    "log_topic": "numbered",
    "log_table": "numbered",
}
DEFINITION = f"""\
tidemark: 1
name: {NAME}
parallelism: 2
epoch: {{interval: 250ms, max_events: 5000}}
sources:
  events:
    kafka: {{topic: {TOPIC}, servers: $KAFKA}}
    schema: {{key: string, seq: long, amount: long, ts: timestamp(ms)}}
    event_time: ts
    key: key
    watermark: {{delay: 5s, idle_timeout: 1h}}
operators:
  totals:
    type: aggregate
    input: events
    key: [key]
    aggregate: {{events: count(), total: sum(amount), last_seq: max(seq)}}
  windows:
    type: window
    input: events
    key: [key]
    window: {{tumbling: {WINDOW_MS}ms}}
    aggregate: {{events: count(), total: sum(amount)}}
  numbered: {{type: map, input: events, select: {{key: key, seq: seq, amount: amount}}}}
sinks:
  totals_topic: {{input: totals, kafka: {{topic: totals, servers: $KAFKA, key: [key]}}}}
  totals_table: {{input: totals, postgres: {{url: $PG, table: totals, key: [key]}}}}
  bad: {{input: events.errors, postgres: {{url: $PG, table: bad, mode: append}}}}
  windows_table: {{input: windows, postgres: {{url: $PG, table: windows, mode: append}}}}
  windows_topic: {{input: windows, kafka: {{topic: windows, servers: $KAFKA, key: [key]}}}}
  late: {{input: windows.late, kafka: {{topic: late, servers: $KAFKA, key: [key]}}}}
  log_topic: {{input: numbered, kafka: {{topic: log, servers: $KAFKA, key: [key]}}}}
  log_table: {{input: numbered, postgres: {{url: $PG, table: log, mode: append}}}}
"""
_NOTED = "place bigserial, session text DEFAULT current_setting('application_name')"
SCHEMA = (
    "CREATE TABLE totals (key text PRIMARY KEY, events bigint, total bigint, last_seq bigint)",
    f"CREATE TABLE totals_versions (key text, events bigint, total bigint, last_seq bigint, {_NOTED})",
    """
    CREATE FUNCTION note_version() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO totals_versions VALUES (NEW.key, NEW.events, NEW.total, NEW.last_seq);
        RETURN NEW;
    END $$""",
    "CREATE TRIGGER noted AFTER INSERT OR UPDATE ON totals FOR EACH ROW EXECUTE FUNCTION note_version()",
    "CREATE TABLE windows (key text, window_start timestamptz, window_end timestamptz, events bigint, total bigint, "
    f"{_NOTED})",
    f"CREATE TABLE log (key text, seq bigint, amount bigint, {_NOTED})",
)


def ledger_topic(sink: str) -> str:
    return f"tidemark.{NAME}.{sink}.ledger"
