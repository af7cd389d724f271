"""What the documents show is so: jobs compile and run, commands print what stands there, tables come from the code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from docs.blocks import Block, all_blocks, blocks_in
from support.repository import ROOT
from support.session_run import run_drained

from tidemark.compiler.compile import compile_job
from tidemark.testing.cases import differences, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def each(blocks: list[Block]) -> list[Any]:
    return [pytest.param(block, id=block.id) for block in blocks]


def cases_in_documents() -> list[Any]:
    jobs = [(block, compile_job(block.text)) for block in all_blocks("yaml", "test")]
    return [
        pytest.param(job, case, id=f"{block.id}-{case.name}") for block, job in jobs for case in job.definition.tests
    ]


def runs_a_job(block: Block) -> bool:
    return block.text.startswith("$ tidemark run ")


def rows(text: str) -> Counter[str]:
    """JSON lines as a set: the order of results is not promised."""
    return Counter(json.dumps(json.loads(line), sort_keys=True) for line in text.splitlines())


def files_of(document: Path, folder: Path) -> Path:
    """Writes the files that a document tells its reader to save."""
    for block in blocks_in(document):
        if "file" in block.asks:
            (folder / block.asks["file"]).write_text(block.text, encoding="utf-8")
    return folder


def test_blocks_are_found() -> None:
    counted = Counter(block.language for block in all_blocks())
    assert counted["yaml"] >= 8
    assert counted["json"] >= 9
    assert counted["console"] >= 2
    assert counted["python"] >= 1
    assert len(cases_in_documents()) >= 6


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    for block in all_blocks():
        assert block.language in ("yaml", "json", "console", "python", "sh", "text"), block.id
        if block.language == "json":
            assert "output" in block.asks or "expected" in block.asks, block.id
        if block.language == "sh":
            assert block.asks.get("not-run"), f"{block.id}: a block that is not run says why"


@pytest.mark.parametrize("block", each(all_blocks("yaml")))
def test_job_compiles(block: Block) -> None:
    compile_job(block.text)


@pytest.mark.parametrize(("job", "case"), cases_in_documents())
def test_tests_of_a_job_pass(job: Any, case: Any, spark: SparkSession) -> None:
    assert differences(job, case, run_case(job, case, spark)) == ""


@pytest.mark.parametrize("block", each(all_blocks("yaml", "run")))
def test_job_puts_out_what_the_next_block_shows(block: Block, tmp_path: Path, spark: SparkSession) -> None:
    shown = next(other for other in blocks_in(block.document) if other.line > block.line)
    assert "output" in shown.asks
    run = run_drained(block.text, tmp_path, spark)
    assert rows(shown.text) == Counter(json.dumps(row, sort_keys=True) for row in run.console)


@pytest.mark.parametrize("block", each([block for block in all_blocks("console") if not runs_a_job(block)]))
def test_commands_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    folder = files_of(block.document, tmp_path)
    for command, output in block.commands():
        assert printed(command.split(), folder) == output


@pytest.mark.parametrize("block", each([block for block in all_blocks("console") if runs_a_job(block)]))
def test_jobs_run_by_command_put_out_what_is_shown(block: Block, tmp_path: Path, spark: SparkSession) -> None:
    folder = files_of(block.document, tmp_path)
    for command, output in block.commands():
        _, _, job, *options = command.split()
        assert options == ["--until-drained"]
        run = run_drained((folder / job).read_text(), folder, spark)
        assert rows(output) == Counter(json.dumps(row, sort_keys=True) for row in run.console)


def printed(words: list[str], folder: Path) -> str:
    assert words[0] == "tidemark"
    command = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("block", each(all_blocks("python")))
def test_python_runs(block: Block, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("block", each(all_blocks("json", "expected")))
def test_rows_shown_by_an_example_are_among_its_results(block: Block) -> None:
    results = block.document.parent / "expected" / f"{block.asks['expected']}.jsonl"
    assert block.text
    assert set(block.text.splitlines()) <= set(results.read_text().splitlines())


def test_the_reference_is_what_the_code_says() -> None:
    command = [sys.executable, "scripts/generate_docs.py", "--check"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_block_is_read_with_its_line_and_what_it_asks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('# x\n\n```console not-run="a b" file=f\n$ one\n1\n2\n$ two\n```\n\n```json\n{}\n```\n')
    console, plain = blocks_in(page)
    assert (console.language, console.line, console.asks) == ("console", 3, {"not-run": "a b", "file": "f"})
    assert console.commands() == [("one", "1\n2\n"), ("two", "")]
    assert (plain.language, plain.asks, plain.text) == ("json", {}, "{}\n")
