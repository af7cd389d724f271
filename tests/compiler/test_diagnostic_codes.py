"""Every code that is raised stands in the catalogue, and every code of the catalogue is raised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.repository import PACKAGE

from tidemark.compiler.diagnostics.codes import CODES

CATALOGUE = PACKAGE / "compiler" / "diagnostics" / "codes.py"
CODE = re.compile(r"[a-z]+(_[a-z]+)+|cycle|unused")
RAISING = {"Problem", "Refused", "refuse", "problem", "ExpressionProblem"}
KNOWN = {code.code for code in CODES}


def sources() -> list[Path]:
    found = [*(PACKAGE / "compiler").rglob("*.py"), *(PACKAGE / "connectors").rglob("options.py")]
    return [path for path in found if path != CATALOGUE]


def raised(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0] if node.args else None
            words = [word.value for word in node.keywords if word.arg == "code"]
            yield from filter(CODE.fullmatch, map(text_of, [*words, first] if name in RAISING else words))


def text_of(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_code_that_is_raised_is_in_the_catalogue() -> None:
    found = {code for path in sources() for code in raised(path)}
    assert len(found) > 30
    assert found - KNOWN == set()


def test_every_code_of_the_catalogue_is_raised_somewhere() -> None:
    words = {word for path in sources() for word in re.findall(r'"([a-z_]+)"', path.read_text())}
    assert KNOWN - words == set()


def test_codes_are_unique_and_explained() -> None:
    assert len(KNOWN) == len(CODES)
    assert all(code.meaning.endswith(".") and code.group for code in CODES)
