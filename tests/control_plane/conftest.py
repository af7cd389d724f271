"""A server for the tests of one module, whose drivers run until they are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane.serving import Server, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a server of one's own."""
    return tmp_path
