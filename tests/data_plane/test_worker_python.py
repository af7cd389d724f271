"""The Python of Spark's workers takes PySpark as it is installed, whatever Spark puts before it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tidemark.data_plane.worker_python import make_worker_python

ZIP = Path(pyspark.__path__[0]) / "python" / "lib" / "pyspark.zip"
WHERE = "import pyspark, sys; print(pyspark.__file__); print(sys.path); print(sys.argv)"


@pytest.mark.parametrize("name", ["plain", 'it\'s a "folder" of $HOME'])
def test_what_is_installed_comes_before_the_zip(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    command = make_worker_python(tmp_path / name)
    environment = {**os.environ, "PYTHONPATH": f"{ZIP}{os.pathsep}/own/modules"}
    run = subprocess.run([command, "-c", WHERE, "a b"], env=environment, capture_output=True, text=True, check=True)
    found, places, arguments = run.stdout.splitlines()
    assert Path(found).resolve() == Path(pyspark.__path__[0], "__init__.py").resolve()
    assert str(ZIP) not in found
    assert str(ZIP) in places
    assert "/own/modules" in places
    assert arguments == "['-c', 'a b']"


def test_a_folder_that_cannot_be_a_place_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    assert make_worker_python(folder) == sys.executable


def test_nothing_is_left_when_the_process_ends(tmp_path: Path) -> None:
    made = "from pathlib import Path; from tidemark.data_plane.worker_python import make_worker_python as make; "
    subprocess.run([sys.executable, "-c", f"{made} make(Path({str(tmp_path)!r}))"], check=True)
    assert list(tmp_path.iterdir()) == []
