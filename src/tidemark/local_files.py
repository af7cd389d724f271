"""Where the class is with which a driver writes local files without starting a process for each of them.

It is a few lines of Java (`data_plane/LocalFiles.java`), compiled once for an environment by the compiler that Spark
brings along. Without it everything works as well, and an epoch takes longer.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from tidemark import prepared

COMMAND = f"{sys.executable} -m tidemark.data_plane.make_local_files"
SOURCE = Path(__file__).parent / "data_plane" / "LocalFiles.java"
_CLASS = "tidemark.LocalFiles"


def path() -> Path:
    """Named after what it was made of, so that a jar of an older version is not taken for this one's."""
    return prepared.folder() / f"local-files-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:8]}.jar"


def can_be_used() -> bool:
    """Whether it is there, and can stand in Java's list of places, which are set apart by colons."""
    return path().is_file() and os.pathsep not in str(path())


def class_path() -> tuple[tuple[str, str], ...]:
    """Also where the class is not used: the archive of classes fits one list of places only."""
    return (("spark.driver.extraClassPath", str(path())),) if can_be_used() else ()


def file_system() -> tuple[tuple[str, str], ...]:
    """For a driver that runs its own tasks: the executors of a cluster do not have the class."""
    return (("spark.hadoop.fs.file.impl", _CLASS),) if can_be_used() else ()
