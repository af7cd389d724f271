"""`tidemark test` on real job files: each kind of item, crashes, differences, jobs that fail, files without tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli.driving import Answer, finish, start_command, tidemark

from tidemark.cli import job_tests
from tidemark.testing.case_messages import CaseResult

JOB = """\
tidemark: 1
name: orders-per-minute
sources:
  orders:
    files: {path: in, format: jsonl}
    schema: {order_id: string, store: string, user: string, amount: double, ts: timestamp}
    event_id: order_id
    key: store
    event_time: ts
    watermark: {delay: 5s, idle_timeout: 30s, max_future: 1h}
  clicks:
    generator: {rate: 10, partitions: 2, columns: {page: "cast(n as string)"}}
    on_error: fail
operators:
  valid: {type: filter, input: orders, where: "amount > 0"}
  per_min:
    type: window
    input: valid
    key: [store]
    window: {tumbling: 1m}
    aggregate: {orders: count(), revenue: sum(amount), buyers: approx_distinct(user)}
  visits: {type: window, input: clicks, key: [page], window: {tumbling: 1m}, aggregate: {visits: count()}}
sinks:
  out: {input: per_min, sqlite: {path: out.db, table: orders_per_minute, key: [store, window_start]}}
  late: {input: per_min.late, files: {path: out/late, format: jsonl}}
  bad: {input: orders.errors, files: {path: out/bad, format: jsonl}}
  visited: {input: visits, console: {}}
  visited_late: {input: visits.late, files: {path: out/visited, format: jsonl}}
"""
TESTS = """\
tests:
  - name: two orders, one late
    input:
      orders:
        - {order_id: a, store: s1, user: u, amount: 2.0, ts: "2026-01-01T00:00:10Z"}
        - {advance_watermark: "2026-01-01T00:20:00Z"}
        - {order_id: b, store: s1, user: u, amount: 3.0, ts: "2026-01-01T00:00:20Z"}
        - {_raw: "{nonsense"}
    expect:
      out:  [{store: s1, window_start: "2026-01-01T00:00:00Z", orders: 1, revenue: 2.0}]
      late: [{order_id: b, lateness_ms: 1180000}]
      bad: [{_error_code: bad_json, _offset: 2}]
  - name: a crash
    input:
      orders:
        - {order_id: a, store: s1, user: u, amount: 2.0, ts: "2026-01-01T00:00:10Z"}
        - {order_id: b, store: s2, user: v, amount: 3.0, ts: "2026-01-01T00:09:20Z"}
        - {crash: true}
        - {order_id: c, store: s1, user: v, amount: 3.0, ts: "2026-01-01T00:00:20Z"}
        - {order_id: d, store: s2, user: u, amount: 3.0, ts: "2026-01-01T00:09:30Z"}
    expect:
      out:
        - {store: s1, orders: 1, revenue: 2.0, buyers: 1}
        - {store: s2, orders: 2, revenue: 6.0, buyers: 2}
      late: [{order_id: c, _offset: 2}]
  - name: a quiet partition lets go
    input:
      clicks:
        - {page: home, _partition: 0, _event_time: "2026-01-01T00:00:01Z"}
        - {epoch: true}
        - {page: home, _partition: 0, _event_time: "2026-01-01T00:05:00Z"}
        - {advance_time: 30s}
        - {page: home, _partition: 1, _event_time: "2026-01-01T00:00:02Z"}
    expect:
      visited:
        - {visits: 1, window_start: "2026-01-01T00:00:00Z"}
        - {visits: 1, window_start: "2026-01-01T00:05:00Z"}
      visited_late: [{page: home, _partition: 1}]
  - name: wrong
    input:
      orders: [{order_id: a, store: s1, user: u, amount: 2.0, ts: "2026-01-01T00:00:10Z"}]
    expect:
      out: [{store: s1, orders: 2, revenue: 2}]
      late: [{order_id: a}]
  - name: a job that fails
    input:
      clicks: [{_raw: "{nonsense"}]
    expect: {}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "tmp").mkdir()
    (folder / "job.yaml").write_text(JOB + TESTS)
    (folder / "untested.yaml").write_text(JOB)
    return folder


@pytest.fixture(scope="module")
def answer(folder: Path) -> Answer:
    """One run of all cases in one command, for all tests here."""
    arguments = ("test", "untested.yaml", "job.yaml", "--json")
    return finish(start_command(folder, None, *arguments, TMPDIR=str(folder / "tmp")), timeout=900)


@pytest.fixture(scope="module")
def results(answer: Answer) -> dict[str, dict[str, Any]]:
    assert answer.out.startswith("["), answer.err
    return {result["name"]: result for result in answer.json}


pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", ["two orders, one late", "a crash", "a quiet partition lets go"])
def test_cases_that_hold(results: dict[str, dict[str, Any]], name: str) -> None:
    assert (results[name]["passed"], results[name]["diff"]) == (True, "")


def test_a_wrong_expectation_fails_with_what_differs(results: dict[str, dict[str, Any]]) -> None:
    assert results["wrong"]["diff"].splitlines() == [
        "sink out: missing rows: 1, unexpected rows: 1",
        '  missing:    {store: "s1", orders: 2, revenue: 2}',
        "    nearest:  orders is 1",
        '  unexpected: {store: "s1", orders: 1, revenue: 2.0}',
        "sink late: missing rows: 1, unexpected rows: 0",
        '  missing:    {order_id: "a"}',
    ]


def test_a_job_that_fails_is_told_by_its_code(results: dict[str, dict[str, Any]]) -> None:
    diff = results["a job that fails"]["diff"]
    assert diff.startswith("the job failed with error[too_many_errors]: source clicks: 1 of 1 records")
    assert "Traceback" not in diff
    assert "Exception" not in diff


def test_the_command_goes_on_tells_the_worst_and_leaves_nothing(folder: Path, answer: Answer) -> None:
    assert answer.code == 2, "the worst is the file without tests"
    assert "untested.yaml has no tests" in answer.err
    assert "hint: write some under `tests:`" in answer.err
    assert "job.yaml: wrong: FAILED" in answer.err
    assert answer.err.rstrip().endswith("3 passed, 2 failed")
    assert "Exception" not in answer.err
    assert list((folder / "tmp").iterdir()) == []
    assert {path.name for path in folder.iterdir()} == {"tmp", "job.yaml", "untested.yaml"}


def test_a_broken_job_is_refused_with_its_place(folder: Path) -> None:
    (folder / "broken.yaml").write_text(JOB + TESTS.replace("order_id: b,", "ordr_id: b,"))
    try:
        answer = tidemark(folder, "test", "broken.yaml")
    finally:
        (folder / "broken.yaml").unlink()
    assert answer.code == 2
    assert "error[unknown_column]: there is no column `ordr_id` here" in answer.err


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, passed: bool, code: int) -> None:
    result = CaseResult(name="case", passed=passed, diff="", seconds=0.0)
    monkeypatch.setattr(job_tests, "run_tests", lambda path, on_result: [result])
    assert job_tests.run_job_tests([Path("job.yaml")], as_json=False) == code
