"""Which package may import which: import-linter's contracts by name, and the allow-lists it cannot express."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest
from support.repository import ROOT

CONTRACTS: list[str] = [
    contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
]

# (the importing package, what is restricted in it, all it may import of that)
ALLOWED = (
    (
        "tidemark.compiler",
        r"tidemark\.connectors(\..*)?",
        r"tidemark\.connectors\.catalogue|tidemark\.connectors\.\w+\.options",
    ),
    ("tidemark.protocol", r"tidemark\..*", r"tidemark\.protocol\..*|tidemark\.compiler\.plan\.plan"),
)

WITHOUT_SPARK = ("tidemark.compiler.compile", "tidemark.cli.main", "tidemark.protocol.messages", "tidemark.job")


@pytest.fixture(scope="module")
def report() -> str:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("tidemark", exclude_type_checking_imports=True, cache_dir=None)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_contract_is_kept(report: str, contract: str) -> None:
    assert f"{contract} KEPT" in report, report


@pytest.mark.parametrize(("package", "restricted", "allowed"), ALLOWED, ids=[row[0] for row in ALLOWED])
def test_package_imports_only_what_it_may(
    graph: grimp.ImportGraph, package: str, restricted: str, allowed: str
) -> None:
    refused = [
        f"{module} imports {imported}"
        for module in sorted({package, *graph.find_descendants(package)})
        for imported in sorted(graph.find_modules_directly_imported_by(module))
        if re.fullmatch(restricted, imported) and not re.fullmatch(allowed, imported)
    ]
    assert not refused, "\n".join(refused)


@pytest.mark.parametrize("module", WITHOUT_SPARK)
def test_module_is_importable_without_loading_spark(module: str) -> None:
    program = f"import sys, {module}; print(*sorted({{'pyspark', 'py4j', 'pandas', 'pyarrow'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "", f"importing {module} loads {done.stdout.strip()}"
