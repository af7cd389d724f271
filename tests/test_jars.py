"""The jars beside Spark's own: what the lock pins, what is noticed when one is missing or altered."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.repository import PACKAGE

from tidemark import jars
from tidemark.errors import EnvironmentFault


@pytest.fixture
def empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_every_line_of_the_lock_is_a_set_coordinates_and_a_checksum() -> None:
    lines = (PACKAGE / "jars.lock").read_text().splitlines()
    entry = rf"({'|'.join(jars.SETS)}) [a-zA-Z0-9._-]+:[a-zA-Z0-9._-]+:[0-9][0-9.-]* [0-9a-f]{{64}}"
    assert [line for line in lines if not re.fullmatch(rf"#[^/]*|{entry}", line)] == []
    assert {set_: len(jars.locked(set_)) for set_ in jars.SETS} == {"connector": 4, "broker": 45}


def test_they_are_here() -> None:
    assert {set_: jars.missing(set_) for set_ in jars.SETS} == {"connector": [], "broker": []}


def test_a_missing_jar_is_named_with_what_to_do(empty_environment: Path) -> None:
    with pytest.raises(EnvironmentFault, match="4 jars of the connector set missing") as raised:
        jars.require(jars.CONNECTOR)
    assert raised.value.hint is not None
    assert "-m tidemark.jars" in raised.value.hint


def test_an_altered_jar_is_missing(empty_environment: Path) -> None:
    first, *_ = jars.locked(jars.CONNECTOR)
    jars.folder(jars.CONNECTOR).mkdir(parents=True)
    (jars.folder(jars.CONNECTOR) / first.file).write_bytes(b"something else")
    assert first in jars.missing(jars.CONNECTOR)


def test_without_a_network_the_message_says_what_to_do(
    empty_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Java is there, and Ivy in it finds nothing: an unreachable proxy and an empty cache stand for the network."""
    closed = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{closed} -Divy.default.ivy.user.dir={empty_environment}/ivy")
    assert jars.main() == 1
    said = capsys.readouterr().err
    assert "could not be fetched" in said
    assert "copy the folder" in said
    assert not list(jars.folder(jars.CONNECTOR).glob("*.jar"))
