"""`validate` and `explain` as a user calls them: places, exit codes, streams, and files that are none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from cli.driving import JOB, tidemark

BROKEN = JOB.replace("tumbling: 1m", "tumbling: soon").replace("event_time: ts", "event_tim: ts")
UNCONNECTED = JOB.replace("  bad: {input: orders.errors, files: {path: bad, format: jsonl}}\n", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(JOB)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    (tmp_path / "warned.yaml").write_text(UNCONNECTED)
    return tmp_path


def test_a_valid_job(folder: Path) -> None:
    answer = tidemark(folder, "validate", "good.yaml")
    assert (answer.code, answer.out, answer.err) == (0, "good.yaml: ok\n", "")
    assert tidemark(folder, "validate", "good.yaml", "--json").json == []
    assert not (folder / ".tidemark").exists()


def test_every_problem_has_its_place_and_every_file_is_checked(folder: Path) -> None:
    answer = tidemark(folder, "validate", "broken.yaml", "good.yaml", "nowhere.yaml")
    assert answer.code == 2
    assert re.search(r"^broken\.yaml:7:\d+: error\[\w+\]: ", answer.out, re.MULTILINE)
    assert re.search(r"^broken\.yaml:9:\d+: error\[bad_duration\]: ", answer.out, re.MULTILINE)
    assert "  hint: " in answer.out
    assert "good.yaml: ok" in answer.out
    assert "nowhere.yaml does not exist" in answer.out


def test_problems_as_json(folder: Path) -> None:
    answer = tidemark(folder, "validate", "broken.yaml", "nowhere.yaml", "--json")
    assert answer.code == 2
    fields = {"file", "code", "message", "hint", "path", "line", "column", "severity"}
    assert all(set(problem) == fields for problem in answer.json)
    assert ("broken.yaml", "bad_duration", 9) in [(item["file"], item["code"], item["line"]) for item in answer.json]
    assert answer.json[-1]["file"] == "nowhere.yaml"
    assert answer.json[-1]["line"] is None


def test_a_warning_is_shown_and_the_job_is_fine(folder: Path) -> None:
    answer = tidemark(folder, "validate", "warned.yaml")
    assert answer.code == 0
    assert re.search(r"^warned\.yaml:\d+:\d+: warning\[\w+\]: .*errors", answer.out, re.MULTILINE)
    assert "warned.yaml: ok" in answer.out
    assert {item["severity"] for item in tidemark(folder, "validate", "warned.yaml", "--json").json} == {"warning"}


def test_explain(folder: Path) -> None:
    answer = tidemark(folder, "explain", "good.yaml")
    assert answer.code == 0
    assert "per_min" in answer.out
    assert isinstance(tidemark(folder, "explain", "good.yaml", "--json").json, dict)


def test_explain_shows_the_problems_of_a_broken_job(folder: Path) -> None:
    told = tidemark(folder, "explain", "broken.yaml", "--json")
    assert (told.code, told.json) == (2, tidemark(folder, "validate", "broken.yaml", "--json").json)
    answer = tidemark(folder, "explain", "broken.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert re.search(r"^broken\.yaml:9:\d+: error\[bad_duration\]: ", answer.err, re.MULTILINE)


@pytest.mark.parametrize("command", ["run", "validate", "explain"])
def test_files_that_are_none(folder: Path, command: str) -> None:
    (folder / "latin.yaml").write_bytes(b"name: caf\xe9")
    (folder / "folder.yaml").mkdir()
    (folder / "loop.yaml").symlink_to("loop.yaml")
    expected = {
        "nowhere.yaml": "does not exist",
        "folder.yaml": "is a folder",
        "latin.yaml": "is not UTF-8 text (byte 9)",
        "loop.yaml": "cannot be read",
        "good.yaml/job.yaml": "cannot be read",
    }
    for name, words in expected.items():
        answer = tidemark(folder, command, name)
        assert answer.code == 2, name
        assert words in answer.out + answer.err
        assert "hint: " in answer.out + answer.err
        assert "Traceback" not in answer.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(folder: Path) -> None:
    (folder / "good.yaml").chmod(0)
    answer = tidemark(folder, "validate", "good.yaml")
    assert (answer.code, "cannot be read" in answer.out) == (2, True)
