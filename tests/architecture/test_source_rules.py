"""The house rules that hold for every source file, whoever adds one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.repository import PACKAGE, name_of, source_files

MAX_LINES = 400
MAX_DOCSTRING_LINES = 5
MAY_TOUCH_SPARK_INTERNALS = PACKAGE / "data_plane" / "spark_internals.py"
SPARK_INTERNALS = re.compile(
    r"\b_(?:jsq|jdf|jsparkSession|jvm|jsc|jconf|jreader|jwrite|jc|jrdd|gateway|to_java_column|streamingCheckpointManager)\b"
    r"|\bsparkContext\._|\bJavaObject\b|\bpy4j\.java_gateway\b"
)


def every_source_file() -> list[object]:
    return [pytest.param(path, id=name_of(path)) for path in source_files()]


def prose_lines(docstring: str) -> list[str]:
    """The lines that are text: blank ones and drawings (indented deeper than the text) do not count."""
    return [line for line in docstring.splitlines() if line.strip() and not line.startswith("    ")]


def spark_internals_in(text: str) -> list[str]:
    return [match.group() for match in SPARK_INTERNALS.finditer(text)]


@pytest.mark.parametrize("path", every_source_file())
def test_module_says_in_a_few_lines_what_lives_there(path: Path) -> None:
    text = path.read_text()
    if path.name == "__init__.py" and not text.strip():
        return
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, "no module docstring"
    assert len(prose_lines(docstring)) <= MAX_DOCSTRING_LINES, docstring


@pytest.mark.parametrize("path", every_source_file())
def test_file_is_small_enough_to_read(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES, f"{lines} lines: split it by idea"


@pytest.mark.parametrize("path", every_source_file())
def test_only_one_file_touches_the_private_api_of_spark(path: Path) -> None:
    if path != MAY_TOUCH_SPARK_INTERNALS:
        assert spark_internals_in(path.read_text()) == []


@pytest.mark.parametrize("text", ["query._jsq", "frame._jdf.x()", "spark.sparkContext._gateway", "spark._jvm"])
def test_private_api_is_recognised(text: str) -> None:
    assert spark_internals_in(text)


def test_public_names_are_not_taken_for_private_api() -> None:
    assert spark_internals_in("frame.sparkSession.sparkContext.applicationId, my_jdf, jsc") == []


def test_the_rules_look_at_something() -> None:
    assert PACKAGE / "errors.py" in source_files()
