"""The examples with a broker and a database: the commands of their pages are run, against real servers."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from docs.blocks import blocks_in
from examples.oracles import Row, plain
from examples.outputs import EXAMPLES, SERVED, assert_same_rows, outputs_of
from psycopg.rows import dict_row

from tidemark.testing.kafka_broker import KafkaBroker

# `tidemark test` is run by test_examples.py, in the session that is there.
NOT_HERE = ("export", "cd", "tidemark test")


def steps_of(name: str) -> list[str]:
    """The commands that the page tells its reader to type once the servers are up."""
    (block,) = [block for block in blocks_in(EXAMPLES / name / "README.md") if "steps" in block.asks]
    return [line for line in block.text.splitlines() if not line.startswith(NOT_HERE)]


def printed(step: str, name: str, environment: Mapping[str, str]) -> str:
    program, *words = shlex.split(step)
    command = [sys.executable] if program == "python" else [str(Path(sys.executable).with_name(program))]
    where = EXAMPLES / name
    done = subprocess.run(
        [*command, *words], cwd=where, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def queried(step: str, url: str) -> list[Row]:
    """What `psql` would show."""
    *command, sql = shlex.split(step)
    assert command == ["psql", "$PG", "-c"]
    with psycopg.connect(url, row_factory=dict_row, options="-c timezone=UTC") as connection:
        return [{name: _as_text(value) for name, value in row.items()} for row in connection.execute(sql.encode())]


def _as_text(value: Any) -> object:
    return plain(value.replace(tzinfo=None)) if isinstance(value, datetime) else value


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", SERVED)
def test_the_steps_of_the_page_give_the_expected_rows(
    name: str, kafka_broker: KafkaBroker, database: str, tmp_path: Path
) -> None:
    servers = {"KAFKA": kafka_broker.servers, "PG": database}
    environment = {**servers, "TIDEMARK_HOME": str(tmp_path), "TIDEMARK_DRIVER_MEMORY": "1g"}
    found: dict[str, list[Row]] = {}
    for step in steps_of(name):
        if step.startswith("psql"):
            found[step] = queried(step, database)
        elif " show " in step:
            found[step] = [json.loads(line) for line in printed(step, name, environment).splitlines()]
        else:
            printed(step, name, environment)
    for output in outputs_of(name):
        assert_same_rows(found[output.place], output.expected())
