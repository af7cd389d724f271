"""Where things lie in the repository, for tests that read it as text."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tidemark"
NOT_OURS = {".git", ".venv", ".tidemark", "build", "dist", "node_modules"}


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def documents() -> list[Path]:
    """Every Markdown page that is kept in the repository."""
    return sorted(path for path in ROOT.rglob("*.md") if not is_left_behind(path.relative_to(ROOT)))


def is_left_behind(path: Path) -> bool:
    return any(part in NOT_OURS or part.endswith("_cache") or part.endswith(".egg-info") for part in path.parts)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
