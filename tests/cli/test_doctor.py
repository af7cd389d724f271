"""`doctor`: finds what a run needs, and says what to install when it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.driving import tidemark

from tidemark.cli.doctor import java_version

CHECKED = ["python", "java", "pyspark", "jars", "kafka", "start-up", "files", "memory", "home", "disk"]


def fake_java(folder: Path, answer: str, code: int = 0) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return program


def test_this_machine_is_fit(tmp_path: Path) -> None:
    answer = tidemark(tmp_path, "doctor")
    assert answer.code == 0, answer.out
    assert [line.split()[:2] for line in answer.out.splitlines()] == [["ok", name] for name in CHECKED]
    assert not (tmp_path / ".tidemark").exists()


def test_as_json(tmp_path: Path) -> None:
    findings = tidemark(tmp_path, "doctor", "--json").json
    assert [finding["name"] for finding in findings] == CHECKED
    assert all(set(finding) == {"name", "ok", "found", "fix"} for finding in findings)


def test_java_is_missing(tmp_path: Path) -> None:
    answer = tidemark(tmp_path, "doctor", JAVA_HOME=str(tmp_path))
    assert answer.code == 1
    assert "missing java" in " ".join(answer.out.split())
    assert "install Java 17 or newer" in answer.out


def test_java_is_too_old(tmp_path: Path) -> None:
    fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    answer = tidemark(tmp_path, "doctor", "--json", JAVA_HOME=str(tmp_path))
    (java,) = (finding for finding in answer.json if finding["name"] == "java")
    assert (answer.code, java["ok"]) == (1, False)
    assert java["found"].startswith("11 at ")


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "24-ea"', 24),
        ("no idea", None),
    ],
)
def test_versions_of_java(tmp_path: Path, says: str, version: int | None) -> None:
    assert java_version(str(fake_java(tmp_path, says))) == version


def test_a_java_that_does_not_run(tmp_path: Path) -> None:
    assert java_version(str(fake_java(tmp_path, 'version "17"', code=1))) is None
    assert java_version(str(tmp_path / "nowhere")) is None


def test_too_little_memory_and_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = tidemark(tmp_path, "doctor", "--json", TIDEMARK_DRIVER_MEMORY="9t", TIDEMARK_HOME="file")
    wrong = {finding["name"]: finding["fix"] for finding in answer.json if not finding["ok"]}
    assert set(wrong) == {"memory", "home"}
    assert "TIDEMARK_DRIVER_MEMORY" in wrong["memory"]
    assert "TIDEMARK_HOME" in wrong["home"]
