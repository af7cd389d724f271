"""Where the class is with which a driver writes local files without starting a process for each of them.

It is a few lines of Java (`data_plane/LocalFiles.java`), compiled once for an environment by the compiler that Spark
brings along. Without it everything works as well, and an epoch takes longer.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

COMMAND = f"{sys.executable} -m tidemark.data_plane.make_local_files"
SOURCE = Path(__file__).parent / "data_plane" / "LocalFiles.java"
_CLASS = "tidemark.LocalFiles"


def path() -> Path:
    return Path(sys.prefix) / "share" / "tidemark" / "local-files.jar"


def settings() -> tuple[tuple[str, str], ...]:
    """What makes a driver that runs its own tasks use the class; nothing when there is none."""
    if not path().is_file() or os.pathsep in str(path()):
        return ()
    return (("spark.driver.extraClassPath", str(path())), ("spark.hadoop.fs.file.impl", _CLASS))
