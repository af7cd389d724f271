"""The lock files pin everything that is installed, exactly, and say nothing about where it came from."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
DEVELOPMENT = PROJECT["project"]["optional-dependencies"]["dev"]


def pins(name: str) -> dict[str, str]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def needed_by(requirements: list[str]) -> dict[str, str]:
    """The installed version of each package that these lead to, on this platform."""
    found: dict[str, str] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not _applies(requirement):
            continue
        package = distribution(name)
        found[name] = package.version
        waiting.extend(Requirement(text) for text in package.requires or [])
    return found


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_line_is_one_exact_pin(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    odd = [line for line in lines if not re.fullmatch(r"#[^/]*|[a-z0-9-]+==[0-9][0-9a-z.]*", line)]
    assert odd == []


def test_runtime_lock_holds_all_that_tidemark_needs_as_installed() -> None:
    assert needed_by(RUNTIME).items() - pins("requirements.lock").items() == set()


def test_both_locks_hold_all_that_development_needs_as_installed() -> None:
    locked = pins("requirements.lock") | pins("requirements-dev.lock")
    assert needed_by(DEVELOPMENT).items() - locked.items() == set()


def test_no_package_is_in_both_locks() -> None:
    assert pins("requirements.lock").keys() & pins("requirements-dev.lock").keys() == set()
