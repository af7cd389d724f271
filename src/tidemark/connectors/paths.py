"""How a path in a job definition becomes a path on disk."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse


def local_path(text: str, base: Path) -> Path:
    """An absolute local path; relative ones start at `base`, `file://` addresses are understood."""
    if text.startswith("file:"):
        text = unquote(urlparse(text).path)
    path = Path(text).expanduser()
    return path if path.is_absolute() else (base / path).absolute()
