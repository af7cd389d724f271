"""The fenced blocks of the documents: what language each is in, and what its first line asks of the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.repository import documents, name_of

FENCE = re.compile(r"^```(?P<language>\w*) ?(?P<asks>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ASK = re.compile(r'([\w-]+)(?:=(?:"([^"]*)"|(\S+)))?')


@dataclass(frozen=True)
class Block:
    """`asks` are the words behind the language: `test`, `run`, `output`, `file=x`, `expected=sink`, `not-run="why"`."""

    document: Path
    line: int
    language: str
    asks: dict[str, str]
    text: str

    @property
    def id(self) -> str:
        return f"{name_of(self.document)}:{self.line}"

    def commands(self) -> list[tuple[str, str]]:
        """Of a console block: each command with what it is said to print."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)
        assert parts[0] == "", f"{self.id} begins with output"
        return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts[1:]]


def blocks_in(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        asks = {name: quoted or plain for name, quoted, plain in ASK.findall(match["asks"])}
        yield Block(document, text.count("\n", 0, match.start()) + 1, match["language"], asks, match["text"])


def all_blocks(language: str | None = None, asks: str | None = None) -> list[Block]:
    found = [block for document in documents() for block in blocks_in(document)]
    return [block for block in found if language in (None, block.language) and (asks is None or asks in block.asks)]
