"""Where the jar of Tidemark's own Java classes is, and how a driver comes to use them.

They are few (`data_plane/java/`), compiled once for an environment by the compiler that Spark brings along. Without
them everything works as well, and an epoch takes longer.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from tidemark import prepared

COMMAND = f"{sys.executable} -m tidemark.data_plane.make_java_classes"
SOURCES = tuple(Path(__file__).parent / "data_plane" / "java" / f"{name}.java" for name in ("LocalFiles", "RowFiles"))
JARS = "tidemark-classes-*.jar"
# Spark finds it by this name; see `data_plane/java/RowFiles.java`.
ROW_FILES = "tidemark.RowFiles"
_LOCAL_FILES = "tidemark.LocalFiles"


def path() -> Path:
    """Named after what it was made of, so that a jar of an older version is not taken for this one's."""
    made_of = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES))
    return prepared.folder() / JARS.replace("*", made_of.hexdigest()[:8])


def can_be_used() -> bool:
    """Whether it is there, and can stand in Java's list of places, which are set apart by colons."""
    return path().is_file() and os.pathsep not in str(path())


def class_path() -> tuple[tuple[str, str], ...]:
    """Also where no class is used: the archive of classes fits one list of places only."""
    return (("spark.driver.extraClassPath", str(path())),) if can_be_used() else ()


def file_system() -> tuple[tuple[str, str], ...]:
    """For a driver that runs its own tasks: executors look for the class before they have been sent the jar."""
    return (("spark.hadoop.fs.file.impl", _LOCAL_FILES),) if can_be_used() else ()


def for_executors() -> list[Path]:
    """What a cluster has to be sent."""
    return [path()] if can_be_used() else []
