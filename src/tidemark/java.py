"""Where Java is: the one that Spark takes, for everything else that runs on it."""

from __future__ import annotations

import os
import shutil

from tidemark.errors import EnvironmentFault


def java_path() -> str | None:
    """The java that Spark would take: that of JAVA_HOME, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def require_java() -> str:
    found = java_path()
    if found is None:
        raise EnvironmentFault("there is no java in JAVA_HOME or on PATH", hint="install Java 17 or newer")
    return found
