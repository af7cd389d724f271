"""JSON lines are read in two ways, by Spark's own reader where that is safe: nobody can tell which one it was."""

from __future__ import annotations

import base64
import json
import os
import random
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.session_run import Row, file_rows, run_drained

from tidemark.connectors.files.flat_json import flat_lines
from tidemark.data_plane.checkpoint import Note

pytestmark = pytest.mark.semantics

JOB = """
tidemark: 1
name: two-ways
sources:
  events:
    files: {path: in, format: jsonl, max_files_per_epoch: 1}
    schema: {id: string, n: int, price: "decimal(6,2)", ts: timestamp, at: timestamp(ms), ok: boolean}
    event_time: ts
    key: id
operators:
  per_minute:
    type: window
    input: events
    key: [id]
    window: {tumbling: 1m}
    aggregate: {AGGREGATE}
sinks:
  out: {input: per_minute, files: {path: out, format: jsonl}}
  bad: {input: events.errors, files: {path: bad, format: jsonl}}
"""
EVERY_FIELD = "events: count(), n: sum(n), price: sum(price), at: max(at), ok: count_if(ok)"
NOT_FLAT = b'{"id": "nested", "inner": {"n": 1}}'


def flat_line(chance: random.Random) -> bytes:
    """One event, or what is left of one after some of its characters were changed or lost."""
    fields = {
        "id": f"k{chance.randrange(5)}",
        "n": chance.choice([1, 2, None, 1.5, "3", 2**40]),
        "price": chance.choice([1, 2.25, "3.5", 12345678]),
        "ts": chance.choice(["2026-01-01T00:00:00Z", "2026-01-01 00:01:00.25", "12:30", 1767225600, "2100-01-01"]),
        "at": chance.choice([1767225600000, "soon", None]),
        "ok": chance.choice([True, False, None, "yes"]),
    }
    line = bytearray(json.dumps(dict(chance.sample(sorted(fields.items()), chance.randint(3, 6)))), "utf-8")
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        place = chance.randrange(len(line) - 1)
        if chance.random() < 0.5:
            del line[place]
        else:
            line[place] = chance.choice(b' "{[:,0a\\-.e\t')
    return bytes(line)


def results(
    folder: Path, files: list[list[bytes]], spark: SparkSession, aggregate: str = EVERY_FIELD
) -> tuple[list[Row], list[tuple[bytes, str]]]:
    (folder / "in").mkdir(parents=True)
    for number, lines in enumerate(files):
        path = folder / "in" / f"{number}.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        os.utime(path, (1_700_000_000 + number,) * 2)
    counts = run_drained(JOB.replace("AGGREGATE", aggregate), folder, spark).total.sources["events"]
    assert counts.events_in == sum(map(len, files)) == counts.accepted + counts.errors
    bad = [(base64.b64decode(row["_raw"]), row["_error_code"]) for row in file_rows(folder / "bad")]
    return sorted(file_rows(folder / "out"), key=str), sorted(bad)


def was_decoded(folder: Path) -> bool:
    return any(folder.rglob(Note.LINES_TO_DECODE.value))


@pytest.mark.parametrize("aggregate", [EVERY_FIELD, "events: count()"], ids=["every_field_is_used", "few_are"])
def test_damaged_lines_are_judged_the_same_in_both_ways(tmp_path: Path, spark: SparkSession, aggregate: str) -> None:
    chance = random.Random(11)
    lines = [flat_line(chance) for _ in range(4_000)]
    flat, bad = results(tmp_path / "flat", [lines], spark, aggregate)
    assert flat_lines([str(tmp_path / "flat" / "in" / "0.jsonl")]) == len(lines)
    decoded, bad_too = results(tmp_path / "decoded", [[*lines, NOT_FLAT]], spark, aggregate)
    assert [was_decoded(tmp_path / way) for way in ("flat", "decoded")] == [False, True]
    assert len(flat) > 5
    assert len(bad) > 1_000
    assert (decoded, bad_too) == (flat, sorted([*bad, (NOT_FLAT, "missing_event_time")]))


ODD_LINES = (
    b"[]}",
    b"[null]}",
    b"[1]}",
    b"}",
    b"null}",
    b'""}',
    b"[[]}",
    b'[{"id": "a", "ts": "2026-01-01T00:00:00Z"}',
    b"[],}",
)


@pytest.mark.parametrize(("time", "errors"), [("ts", "read"), ("_ingestion_time", "not_read")])
def test_no_line_gets_lost_that_is_no_object(tmp_path: Path, spark: SparkSession, time: str, errors: str) -> None:
    """Spark's reader makes no row of some of these, without a word; and few of a job's columns need be looked at."""
    job = JOB.replace("AGGREGATE", "events: count()").replace("event_time: ts", f"event_time: {time}")
    job = job.replace("    key: id\n", "").replace("key: [id]", "key: []").replace("n: int, ", "")
    job = re.sub("schema: .*", "schema: {id: string, ts: timestamp}", job)
    job = job if errors == "read" else re.sub("  bad: .*\n", "", job)
    good = [b'{"id": "a", "ts": "2026-01-01T00:00:00Z"}'] * 3
    for way, also in (("flat", []), ("decoded", [NOT_FLAT])):
        (tmp_path / way / "in").mkdir(parents=True)
        (tmp_path / way / "in" / "0.jsonl").write_bytes(b"\n".join([*good, *ODD_LINES, *good, *also]) + b"\n")
        counts = run_drained(job, tmp_path / way, spark).total.sources["events"]
        refused = len(ODD_LINES) + (len(also) if time == "ts" else 0)
        assert (counts.events_in, counts.errors) == (6 + len(ODD_LINES) + len(also), refused), way
        assert counts.accepted == counts.events_in - refused
        if errors == "read":
            bad = [base64.b64decode(row["_raw"]) for row in file_rows(tmp_path / way / "bad")]
            assert sorted(set(bad) - {NOT_FLAT}) == sorted(ODD_LINES)
        assert was_decoded(tmp_path / way) == bool(also)


@pytest.mark.parametrize("type_", ["string", "long"])
@pytest.mark.parametrize("also", [[], [NOT_FLAT]], ids=["flat", "decoded"])
def test_no_name_of_a_column_has_a_meaning_to_spark(
    tmp_path: Path, spark: SparkSession, also: list[bytes], type_: str
) -> None:
    """By this one its reader knows the column for what it could not read."""
    job = re.sub("schema: .*", f"schema: {{id: string, ts: timestamp, _corrupt_record: {type_}}}", JOB)
    lines = [b'{"id": "a", "ts": "2026-01-01T00:00:00Z", "_corrupt_record": 7}', *also]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    run_drained(job.replace("AGGREGATE", "was: max(_corrupt_record)"), tmp_path, spark)
    (row,) = file_rows(tmp_path / "out")
    assert str(row["was"]) == "7"


def test_a_file_that_is_not_flat_may_come_at_any_time(tmp_path: Path, spark: SparkSession) -> None:
    good = [b'{"id": "a", "n": 1, "ts": "2026-01-01T00:00:00Z"}', b'{"id": "b", "n": 2, "ts": "2026-01-01T00:00:01Z"}']
    glued = b"".join(good)
    rows, bad = results(tmp_path, [good, [*good, glued], good], spark)
    assert [(row["id"], row["events"], row["n"]) for row in rows] == [("a", 3, 3), ("b", 3, 6)]
    assert bad == [(glued, "bad_json")]


@pytest.mark.parametrize("also", [[], [NOT_FLAT]], ids=["flat", "decoded"])
def test_a_decimal_keeps_every_digit(tmp_path: Path, spark: SparkSession, also: list[bytes]) -> None:
    job = JOB.replace("decimal(6,2)", "decimal(28,8)").replace("AGGREGATE", "price: max(price)")
    line = b'{"id": "a", "ts": "2026-01-01T00:00:00Z", "price": 12345678901234567890.12345678}'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_bytes(b"\n".join([line, *also]) + b"\n")
    run_drained(job, tmp_path, spark)
    assert was_decoded(tmp_path) == bool(also)
    (written,) = (tmp_path / "out").glob("part-*")
    assert "12345678901234567890.12345678" in written.read_text()
