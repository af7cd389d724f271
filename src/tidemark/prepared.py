"""What set-up makes once for an environment lies here: jars, the class for local files, archives of classes."""

from __future__ import annotations

import sys
from pathlib import Path


def folder() -> Path:
    return Path(sys.prefix) / "share" / "tidemark"
