"""Input that nobody should send: the job goes on, the bytes are kept, the counts agree."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.session_run import Run, file_rows, run_drained

from tidemark.errors import SourceUnreadable, TooManyErrors

pytestmark = pytest.mark.semantics

GOOD = {"id": "good", "n": 1, "price": 2.5, "ts": "2026-01-01T00:00:00Z"}
JOB = """
tidemark: 1
name: hostile
sources:
  events:
    files: {{path: in, format: {format}}}
    schema:
      {{id: string, n: int, price: "decimal(6,2)", ts: timestamp, at: timestamp(ms), ok: boolean, tags: array<int>}}
    event_time: ts
    key: id
    {extra}
operators:
  same: {{type: map, input: events, set: {{doubled: "n * 2"}}}}
sinks:
  out: {{input: same, files: {{path: out, format: jsonl}}}}
  bad: {{input: events.errors, files: {{path: bad, format: jsonl}}}}
"""


def run(folder: Path, spark: SparkSession, lines: list[bytes], format_: str = "jsonl", extra: str = "") -> Run:
    (folder / "in").mkdir()
    (folder / "in" / "a").write_bytes(b"\n".join(lines) + b"\n")
    return run_drained(JOB.format(format=format_, extra=extra), folder, spark)


def encoded(**fields: object) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


BAD_JSON: dict[bytes, str] = {
    b"garbage": "bad_json",
    b"{": "bad_json",
    b"null": "bad_json",
    b"[]": "bad_json",
    b"42": "bad_json",
    b'"text"': "bad_json",
    encoded().replace(b'"', b"'"): "bad_json",
    encoded().replace(b'"good"', b"'good'"): "bad_json",
    encoded() + b" trailing": "bad_json",
    encoded() + encoded(): "bad_json",
    encoded() + b"," + encoded(): "bad_json",
    b"[" + encoded() + b"]": "bad_json",
    b'{"id": "\xff\xfe", "ts": "2026-01-01T00:00:00Z"}': "invalid_utf8",
    b"\x00\x01\x02": "bad_json",
    encoded(n="one"): "wrong_type",
    encoded(n=1.5): "wrong_type",
    encoded(n=2**40): "wrong_type",
    encoded(price="cheap"): "wrong_type",
    encoded(ok="yes"): "wrong_type",
    encoded(tags=["x"]): "wrong_type",
    encoded(at="soon"): "wrong_type",
    encoded(ts="yesterday"): "wrong_type",
    encoded(ts="12:30"): "wrong_type",
    encoded(ts=1767225600): "wrong_type",
    encoded(ts=None): "missing_event_time",
    b'{"id": "no time"}': "missing_event_time",
    b"{}": "missing_event_time",
    encoded(id=None): "missing_key",
    encoded(ts="2100-01-01T00:00:00Z"): "future_event",
    b"x" * 10_000_000: "bad_json",
}


def test_every_kind_of_bad_json_is_kept_with_its_reason(tmp_path: Path, spark: SparkSession) -> None:
    fine = [encoded(), encoded(extra={"deep": [1]}), encoded(n=None, price=None), encoded(price=3), b"  " + encoded()]
    long_but_fine = encoded(id="y" * 10_000_000)
    ran = run(tmp_path, spark, [*BAD_JSON, *fine, b"", b"   ", long_but_fine])
    counts = ran.total.sources["events"]
    assert (counts.events_in, counts.accepted, counts.errors) == (len(BAD_JSON) + 6, 6, len(BAD_JSON))
    assert len(file_rows(tmp_path / "out")) == 6
    rows = file_rows(tmp_path / "bad")
    assert {base64.b64decode(row["_raw"]): row["_error_code"] for row in rows} == BAD_JSON
    assert all(row["_error"] and row["_source"] == "events" and row["_event_id"] for row in rows)


NINES = "\N{FULLWIDTH DIGIT NINE}" * 8
ENDLESS = (
    *("1e100000000", "-1E+99999999", "1e-100000000"),
    *('"1e100000000"', '"5.e-99999999"', '"1,e,+9,999,999,9"', f'"1e{NINES}"'),
)


def with_number(field: str, number: str) -> bytes:
    return encoded(**{field: "@"}).replace(b'"@"', number.encode())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("also", [[], [b'{"not": {"flat": 1}}']], ids=["flat", "decoded"])
def test_a_number_that_nobody_can_write_out_is_not_written_out(
    tmp_path: Path, spark: SparkSession, also: list[bytes]
) -> None:
    """Spark would, digit by digit, to make a decimal of it."""
    looks_alike = [
        encoded(id="5e12345"),
        encoded(id='\\": 1e12345', price=0.0),
        with_number("price", "1e0001"),
    ]
    endless = [with_number(field, number) for field in ("price", "at") for number in ENDLESS]
    ran = run(tmp_path, spark, [*looks_alike, *endless, *also])
    assert (ran.total.sources["events"].accepted, ran.total.sources["events"].errors) == (3, len(endless) + len(also))
    rows = file_rows(tmp_path / "out")
    assert sorted(row["price"] for row in rows) == [0.0, 2.5, 10.0]
    bad = {base64.b64decode(row["_raw"]): row["_error_code"] for row in file_rows(tmp_path / "bad")}
    assert {line: bad[line] for line in endless} == dict.fromkeys(endless, "wrong_type")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_nor_is_one_inside_an_array(tmp_path: Path, spark: SparkSession, format_: str) -> None:
    (tmp_path / "in").mkdir()
    lines = ["id,ts,prices"] if format_ == "csv" else []
    for number in (*ENDLESS, "2.50"):
        row = {"id": "x", "ts": "2026-01-01T00:00:00Z"}
        quoted = number.replace('"', '""')
        text = f'x,2026-01-01T00:00:00Z,"[1, {quoted}]"'
        lines.append(text if format_ == "csv" else f'{json.dumps(row)[:-1]}, "prices": [1, {number}]}}')
    (tmp_path / "in" / "a").write_text("\n".join(lines) + "\n")
    job = (
        JOB.format(format=format_, extra="").partition("schema:")[0]
        + """schema: {id: string, ts: timestamp, prices: "array<decimal(6,2)>"}
    event_time: ts
sinks:
  out: {input: events, files: {path: out, format: jsonl}}
  bad: {input: events.errors, files: {path: bad, format: jsonl}}
"""
    )
    ran = run_drained(job, tmp_path, spark)
    assert (ran.total.sources["events"].accepted, ran.total.sources["events"].errors) == (1, len(ENDLESS))
    assert [row["prices"] for row in file_rows(tmp_path / "out")] == [[1.0, 2.5]]


def test_bad_csv_is_kept_and_short_lines_are_not_bad(tmp_path: Path, spark: SparkSession) -> None:
    lines = [
        b"id,n,price,ts,at,ok,tags",
        b'a,1,2.50,2026-01-01T00:00:00Z,1767225600000,true,"[1,2]"',
        b'"b ""quoted"", comma",,,2026-01-01T00:00:00Z',
        b"c,1,1,2026-01-01T00:00:00Z,1,false,[],extra,fields",
        b"",
        b"d,one,1,2026-01-01T00:00:00Z",
        b"e,1,1,today",
        b"f\xff,1,1,2026-01-01T00:00:00Z",
        b",1,1,2026-01-01T00:00:00Z",
        b"g",
    ]
    ran = run(tmp_path, spark, lines, "csv")
    rows = {row["id"]: row for row in file_rows(tmp_path / "out")}
    assert rows.keys() == {"a", 'b "quoted", comma', "c"}
    assert (rows["a"]["n"], rows["a"]["doubled"], rows["a"]["tags"], rows["a"]["ok"]) == (1, 2, [1, 2], True)
    assert rows["a"]["at"] == "2026-01-01T00:00:00Z"
    codes = {base64.b64decode(row["_raw"]): row["_error_code"] for row in file_rows(tmp_path / "bad")}
    assert codes == {
        lines[5]: "wrong_type",
        lines[6]: "wrong_type",
        lines[7]: "invalid_utf8",
        lines[8]: "missing_key",
        lines[9]: "missing_event_time",
    }
    assert ran.total.sources["events"].events_in == 8


def test_empty_files_are_no_events(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    for name in range(5):
        (tmp_path / "in" / str(name)).touch()
    assert run_drained(JOB.format(format="jsonl", extra=""), tmp_path, spark).total.sources["events"].events_in == 0


def test_no_name_of_a_file_or_folder_hides_its_bad_records(tmp_path: Path, spark: SparkSession) -> None:
    """Bad records are found by reading the epoch's files again, by name."""
    folder = tmp_path / 'a "quoted" #folder, 100%'
    (folder / "in").mkdir(parents=True)
    names = ["plain", "with space", "50%20", "{a,b}", "[1]", "star*", "what?", "naïve", "a#b", "e+f&g=h;i"]
    for name in names:
        (folder / "in" / f"{name}.jsonl").write_bytes(encoded(id=name) + b"\nbad in " + name.encode() + b"\n")
    run_drained(JOB.format(format="jsonl", extra=""), folder, spark)
    assert sorted(row["id"] for row in file_rows(folder / "out")) == sorted(names)
    kept = sorted(base64.b64decode(row["_raw"]).decode() for row in file_rows(folder / "bad"))
    assert kept == sorted(f"bad in {name}" for name in names)


def test_a_colon_in_the_name_of_a_file_is_named(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "12:30.jsonl").write_bytes(encoded() + b"\n")
    with pytest.raises(SourceUnreadable, match="a colon in its name: 12:30"):
        run_drained(JOB.format(format="jsonl", extra=""), tmp_path, spark)


# Both ways of reading JSON refuse these: the first is found by decoding lines, the other is left out by Spark's reader.
EITHER_WAY = pytest.mark.parametrize("garbage", [b"garbage", b"garbage}"], ids=["decoded", "flat"])


@EITHER_WAY
def test_on_error_fail_stops_before_anything_is_written(tmp_path: Path, spark: SparkSession, garbage: bytes) -> None:
    with pytest.raises(TooManyErrors):
        run(tmp_path, spark, [encoded(), garbage], extra="on_error: fail")
    assert file_rows(tmp_path / "out") == file_rows(tmp_path / "bad") == []


TWO_QUERIES = (
    JOB
    + """
  other: {{input: all, files: {{path: other, format: jsonl}}}}
"""
).replace(
    "sinks:",
    "  all: {{type: filter, input: events, where: 1 = 1}}\nsinks:",
)


@EITHER_WAY
def test_no_query_takes_what_its_source_refuses(tmp_path: Path, spark: SparkSession, garbage: bytes) -> None:
    """Each of two queries that read a source, whichever of them answers for its errors, also while the other waits."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"\n".join([encoded(), garbage]) + b"\n")
    for _ in range(3):
        with pytest.raises(TooManyErrors):
            run_drained(TWO_QUERIES.format(format="jsonl", extra="on_error: fail"), tmp_path, spark)
    assert [file_rows(tmp_path / sink) for sink in ("out", "other", "bad")] == [[], [], []]


@EITHER_WAY
@pytest.mark.parametrize(("bad", "stops"), [(1, False), (2, True)])
def test_max_error_rate_is_a_share_of_the_epoch(
    bad: int, stops: bool, tmp_path: Path, spark: SparkSession, garbage: bytes
) -> None:
    lines = [encoded()] * (10 - bad) + [garbage] * bad
    if stops:
        with pytest.raises(TooManyErrors):
            run(tmp_path, spark, lines, extra="max_error_rate: 0.1")
    else:
        assert run(tmp_path, spark, lines, extra="max_error_rate: 0.1").total.sinks["bad"].rows == 1


def test_a_broken_parquet_file_fails_the_job_by_name(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(SourceUnreadable, match="in/a"):
        run(tmp_path, spark, [b"PAR1 not really PAR1"], "parquet")
