"""Where the archive of Spark's classes is, with which a driver starts in about half the time.

Java reads and checks some twenty thousand classes when Spark starts; from an archive of them, made once for an
environment, it takes them as they are. Java ignores an archive that does not fit it or Spark's jars, and says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

COMMAND = f"{sys.executable} -m tidemark.data_plane.make_class_archive"


def path() -> Path:
    return Path(sys.prefix) / "share" / "tidemark" / "spark-classes.jsa"


def java_options() -> list[str]:
    """What makes Java use the archive; nothing when there is none."""
    return [f"-XX:SharedArchiveFile={path()}"] if path().is_file() else []
