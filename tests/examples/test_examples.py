"""Every example gives what its folder says, and what an independent computation over the same data says."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from examples.outputs import (
    EXAMPLES,
    NAMES,
    OUTPUTS,
    RANKING,
    SERVED,
    Output,
    assert_same_rows,
    outputs_of,
    without_ranking,
)
from support.session_run import run_drained

from examples import oracles
from tidemark.compiler.compile import compile_job
from tidemark.testing.cases import differences, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITTED = [name for name in NAMES if name != "orders-per-minute"]
IN_FOLDERS = [name for name in NAMES if name not in SERVED]


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


def test_every_example_and_every_expected_file_is_looked_at() -> None:
    assert len(NAMES) == 7
    found = {(path.parts[-3], path.stem) for path in EXAMPLES.glob("*/expected/*.jsonl")}
    assert found == {(output.example, output.sink) for output in OUTPUTS}


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_input_is_what_the_script_writes(name: str, tmp_path: Path, make_data: ModuleType) -> None:
    make_data.write(name, tmp_path)
    for written in (tmp_path / "in").iterdir():
        assert (EXAMPLES / name / "in" / written.name).read_bytes() == written.read_bytes()


@pytest.mark.parametrize("name", IN_FOLDERS)
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
