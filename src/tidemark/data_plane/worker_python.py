"""The Python with which Spark starts its workers: one that does not compile PySpark anew in each of them.

Spark puts a zip of PySpark before every other place, and Python keeps nothing that it compiled of a zip. That took half
a second of each worker, of which a job with a generator or dedup starts ten.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import py4j
import pyspark

_SCRIPT = """\
#!/bin/sh
PYTHONPATH={place}${{PYTHONPATH:+:$PYTHONPATH}} exec {python} "$@"
"""


def make_worker_python(temporary: Path) -> str:
    """A command that runs this Python with PySpark as it is installed; where that cannot be, this Python."""
    # A colon would end the name of a place.
    if os.pathsep in str(temporary):
        return sys.executable
    try:
        command = _write_command(Path(tempfile.mkdtemp(prefix="worker-python-", dir=temporary)))
    except OSError:
        return sys.executable
    # Some file systems let nothing be executed.
    return str(command) if os.access(command, os.X_OK) else sys.executable


def _write_command(folder: Path) -> Path:
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for package in (pyspark, py4j):
        (folder / package.__name__).symlink_to(package.__path__[0])
    command = folder / "python"
    command.write_text(_SCRIPT.format(place=shlex.quote(str(folder)), python=shlex.quote(sys.executable)))
    command.chmod(0o700)
    return command
