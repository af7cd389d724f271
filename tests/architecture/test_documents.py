"""Every path that a document names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.repository import PACKAGE, ROOT, documents, is_left_behind, name_of

FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([^`\s]+)`")
PLACEHOLDER = re.compile(r"[<>{}$*…|]")


def linked_paths(text: str) -> list[str]:
    targets = (target.split("#")[0] for target in LINK.findall(FENCED.sub("", text)))
    return [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]


def quoted_paths(text: str) -> list[str]:
    """The words in backquotes that begin like a path of the repository, or name a page or a module."""
    words = [word.rstrip(".,:") for word in QUOTED.findall(FENCED.sub("", text)) if not PLACEHOLDER.search(word)]
    return [word for word in words if _begins_in_repository(word) or re.fullmatch(r"[\w.-]+\.(md|py)", word)]


def _begins_in_repository(word: str) -> bool:
    head, slash, _ = word.partition("/")
    return bool(slash) and head in _heads()


def _heads() -> set[str]:
    folders = [*ROOT.iterdir(), *PACKAGE.iterdir()]
    return {folder.name for folder in folders if folder.is_dir() and not is_left_behind(Path(folder.name))}


def exists(path: str, document: Path) -> bool:
    bases = (document.parent, ROOT, PACKAGE)
    return any((base / path).exists() for base in bases) or ("/" not in path and _is_file_somewhere(path))


def _is_file_somewhere(name: str) -> bool:
    return any(not is_left_behind(path.relative_to(ROOT)) for path in ROOT.rglob(name))


@pytest.mark.parametrize("document", [pytest.param(path, id=name_of(path)) for path in documents()])
def test_paths_in_document_exist(document: Path) -> None:
    text = document.read_text()
    broken_links = [path for path in linked_paths(text) if not (document.parent / path).exists()]
    missing = [path for path in quoted_paths(text) if not exists(path, document)]
    assert (broken_links, missing) == ([], [])


def test_documents_are_found_and_name_paths() -> None:
    contributing = ROOT / "CONTRIBUTING.md"
    assert contributing in documents()
    assert quoted_paths(contributing.read_text())


def test_missing_paths_are_noticed() -> None:
    text = "See [the guide](docs/nowhere.md#top), `src/tidemark/nowhere.py` and `tests/` but not `out/late` or `a/<b>`."
    assert linked_paths(text) == ["docs/nowhere.md"]
    assert quoted_paths(text) == ["src/tidemark/nowhere.py", "tests/"]
    assert not exists("src/tidemark/nowhere.py", ROOT / "README.md")
    assert not exists("nowhere.py", ROOT / "README.md")
