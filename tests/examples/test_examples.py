"""Every example gives what its folder says, and what an independent computation over the same data says."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from support.repository import ROOT
from support.session_run import Row, file_rows, run_drained, table_rows

from examples import oracles
from tidemark.compiler.compile import compile_job
from tidemark.testing.cases import differences, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/job.yaml"))
COMMITTED = [name for name in NAMES if name != "orders-per-minute"]
# Of equal counts the sketch may list any: the counts are compared here, the items with the oracle.
RANKING = "top"


@dataclass(frozen=True)
class Output:
    """Where a sink of an example writes; `oracle` is the DuckDB query for its exact columns."""

    example: str
    sink: str
    place: str
    table: str | None = None
    oracle: str | None = None

    def expected(self) -> list[Row]:
        path = EXAMPLES / self.example / "expected" / f"{self.sink}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def written(self, folder: Path) -> list[Row]:
        rows = table_rows(folder / self.place, self.table) if self.table else file_rows(folder / self.place)
        return [{name: _nested(value) for name, value in row.items()} for row in rows]


OUTPUTS = (
    Output("trending-topics", "trends", "out/topics.db", "trends", oracles.TOTALS_PER_WINDOW),
    Output("trending-topics", "counts", "out/topics.db", "counts", oracles.COUNTS_PER_TOPIC),
    Output("user-sessions", "sessions", "out/sessions.db", "sessions", oracles.SESSIONS),
    Output("orders-per-minute", "out", "out/orders.db", "orders_per_minute", oracles.ORDERS_PER_MINUTE),
    Output("orders-per-minute", "late", "out/late", oracle=oracles.LATE_ORDERS),
    Output("orders-per-minute", "bad", "out/bad"),
    Output("bot-detection", "suspects", "out/bots.db", "suspects", oracles.BOTS),
    Output("llm-serving", "latency", "out/serving.db", "latency", oracles.LATENCY),
    Output("llm-serving", "usage", "out/serving.db", "usage", oracles.USAGE),
)


def _nested(value: object) -> object:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value


def assert_same_rows(found: list[Row], expected: list[Row]) -> None:
    """As a set, on the columns of the expected rows; floating sums may differ in the last digits."""
    names = list(expected[0])
    ours, theirs = (sorted(([row[name] for name in names] for row in rows), key=_order) for rows in (found, expected))
    assert len(ours) == len(theirs)
    assert [pair for pair in zip(ours, theirs, strict=True) if not _close(pair[0], pair[1])] == []


def _order(row: list[Any]) -> str:
    return json.dumps([round(value, 4) if isinstance(value, float) else value for value in row])


def _close(left: list[Any], right: list[Any]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) else a == b for a, b in zip(left, right, strict=True)
    )


def without_ranking(rows: list[Row]) -> list[Row]:
    return [row | {RANKING: [each["count"] for each in row[RANKING]]} if RANKING in row else row for row in rows]


@pytest.fixture(scope="module")
def make_data() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_data", EXAMPLES / "make_data.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepared(name: str, folder: Path, make_data: ModuleType) -> Path:
    """A copy of an example with fresh input and no output."""
    shutil.copyfile(EXAMPLES / name / "job.yaml", folder / "job.yaml")
    make_data.write(name, folder)
    return folder


def outputs_of(name: str) -> list[Output]:
    return [output for output in OUTPUTS if output.example == name]


def test_every_example_and_every_expected_file_is_looked_at() -> None:
    assert len(NAMES) == 5
    found = {(path.parts[-3], path.stem) for path in EXAMPLES.glob("*/expected/*.jsonl")}
    assert found == {(output.example, output.sink) for output in OUTPUTS}


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_input_is_what_the_script_writes(name: str, tmp_path: Path, make_data: ModuleType) -> None:
    make_data.write(name, tmp_path)
    for written in (tmp_path / "in").iterdir():
        assert (EXAMPLES / name / "in" / written.name).read_bytes() == written.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_job_gives_the_expected_rows(name: str, tmp_path: Path, make_data: ModuleType, spark: SparkSession) -> None:
    folder = prepared(name, tmp_path, make_data)
    total = run_drained((folder / "job.yaml").read_text(), folder, spark).total
    for output in outputs_of(name):
        written = output.written(folder)
        assert_same_rows(without_ranking(written), without_ranking(output.expected()))
        assert total.sinks[output.sink].rows == len(written)
    for source in total.sources.values():
        assert source.events_in == source.accepted + source.errors > 0
    for operator in total.operators.values():
        assert operator.rows_in == operator.passed + operator.filtered + operator.duplicates + operator.late > 0


@pytest.mark.parametrize(
    "output", [pytest.param(each, id=f"{each.example}-{each.sink}") for each in OUTPUTS if each.oracle]
)
def test_expected_rows_agree_with_an_independent_computation(
    output: Output, tmp_path: Path, make_data: ModuleType
) -> None:
    make_data.write(output.example, tmp_path)
    assert output.oracle
    assert_same_rows(output.expected(), oracles.compute(output.oracle, tmp_path))


def test_the_ranking_by_sketch_agrees_with_the_exact_counts(tmp_path: Path, make_data: ModuleType) -> None:
    make_data.write("trending-topics", tmp_path)
    exact: dict[str, dict[str, int]] = {}
    for row in oracles.compute(oracles.COUNTS_PER_TOPIC, tmp_path):
        exact.setdefault(row["window_start"], {})[row["topic"]] = row["mentions"]
    for window in outputs_of("trending-topics")[0].expected():
        counts, ranking = exact[window["window_start"]], window[RANKING]
        assert [each["count"] for each in ranking] == sorted(counts.values(), reverse=True)[:3]
        assert {each["item"]: each["count"] for each in ranking}.items() <= counts.items()


def test_percentiles_by_sketch_keep_their_bound(tmp_path: Path, make_data: ModuleType) -> None:
    make_data.write("llm-serving", tmp_path)
    waits = {(row["model"], row["window_start"]): row["waits"] for row in oracles.compute(oracles.TTFT, tmp_path)}
    for row in outputs_of("llm-serving")[0].expected():
        values = waits[row["model"], row["window_start"]]
        for column, share in (("ttft_p50", 0.5), ("ttft_p99", 0.99)):
            below = sum(value < row[column] for value in values) / len(values)
            up_to = sum(value <= row[column] for value in values) / len(values)
            assert below - 0.02 <= share <= up_to + 0.02


def job_tests() -> list[Any]:
    compiled = {name: compile_job((EXAMPLES / name / "job.yaml").read_text()) for name in NAMES}
    return [
        pytest.param(job, case, id=f"{name}-{case.name}")
        for name, job in compiled.items()
        for case in job.definition.tests
    ]


@pytest.mark.parametrize(("job", "case"), job_tests())
def test_the_tests_in_the_job_file_pass(job: Any, case: Any, spark: SparkSession) -> None:
    assert differences(job, case, run_case(job, case, spark)) == ""


def test_every_example_has_tests_in_its_job_file() -> None:
    assert {param.values[0].plan.job for param in job_tests()} == set(NAMES)


@pytest.mark.spark
def test_an_example_through_the_command_line(tmp_path: Path, make_data: ModuleType) -> None:
    folder = prepared("bot-detection", tmp_path, make_data)
    command = [str(Path(sys.executable).with_name("tidemark")), "run", "job.yaml", "--until-drained", "--json"]
    environment = {**os.environ, "TIDEMARK_DRIVER_MEMORY": "1g"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["state"] == "FINISHED"
    assert summary["sources"]["requests"] == {"in": 870, "accepted": 870, "errors": 0}
    (suspects,) = outputs_of("bot-detection")
    assert_same_rows(suspects.written(folder), suspects.expected())
