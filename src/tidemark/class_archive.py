"""Where the archive of Spark's classes is, with which a driver starts in about half the time.

Java reads and checks some twenty thousand classes when Spark starts; from an archive of them, made once for an
environment, it takes them as they are. Java ignores an archive that does not fit it or the jars, and says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark import java_classes, prepared

COMMAND = f"{sys.executable} -m tidemark.data_plane.make_class_archive"


def path() -> Path:
    return prepared.folder() / "spark-classes.jsa"


def can_be_used() -> bool:
    """Whether it is there, and was made after the jar that comes first in Java's list of places."""
    jar = java_classes.path()
    return path().is_file() and (not jar.is_file() or jar.stat().st_mtime <= path().stat().st_mtime)


def java_options() -> list[str]:
    """What makes Java use the archive; nothing when there is none."""
    return [f"-XX:SharedArchiveFile={path()}"] if can_be_used() else []
