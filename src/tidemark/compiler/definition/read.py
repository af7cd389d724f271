"""YAML or JSON text to a `Document`: plain data with positions. JSON takes the same way, so it has positions too.

Built on the events of the YAML parser, never on its constructors: no tag makes an object, aliases may not
multiply the document, and depth and size are bounded. Every refusal is a problem, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)
from ruamel.yaml.reader import ReaderError

from tidemark.compiler.definition.document import Document
from tidemark.compiler.definition.scalars import ScalarError, resolve, text_value
from tidemark.compiler.diagnostics.diagnostic import Mark, Path, Problem

MAX_CHARACTERS = 512 * 1024
MAX_DEPTH = 32
MAX_VALUES = 50_000
Scalar = TypeVar("Scalar")
SPLIT = "Split it into several jobs, or shorten its tests."
LOOK_BEFORE = "Look at this place and the line before: quotes, brackets, colons, indentation."
SECTIONS_OF_IDS = ("sources", "operators", "sinks")


@dataclass(frozen=True)
class Located:
    """A composed node: `content` is a scalar value, a list of nodes or a list of (key, mark of the key, node)."""

    mark: Mark
    content: Any
    kind: str


class Refused(Exception):
    """Reading cannot go on; the mark is where."""

    def __init__(self, code: str, message: str, hint: str, mark: Mark) -> None:
        super().__init__(message)
        self.code, self.hint, self.mark = code, hint, mark


def read(text: str) -> tuple[Document, list[Problem]]:
    """The document and what is wrong with its syntax; its data is None when it could not be read at all."""
    lines = tuple(text.split("\n"))
    try:
        root = _compose(text)
        flat = _Flattened()
        data = flat.add(root, (), 0)
    except Refused as refusal:
        problem = Problem(refusal.code, str(refusal), refusal.hint, mark=refusal.mark)
        return Document(None, lines=lines), [problem]
    return Document(data, flat.values, flat.keys, lines), flat.problems


def _compose(text: str) -> Located:
    if len(text) > MAX_CHARACTERS:
        raise Refused("too_large", f"the definition has more than {MAX_CHARACTERS} characters", SPLIT, Mark(0, 0))
    try:
        return _Composer(YAML(typ="safe", pure=True).parse(text)).document()
    except ReaderError as error:
        raise Refused(
            "bad_character",
            f"the character U+{error.character:04X} is not allowed",
            "Remove it.",
            _mark_at(text, error.position),
        ) from None
    except MarkedYAMLError as error:
        raise Refused("yaml_syntax", _sentence(error), LOOK_BEFORE, _mark_of(error)) from None
    except YAMLError as error:
        raise Refused("yaml_syntax", str(error).split("\n")[0], LOOK_BEFORE, Mark(0, 0)) from None


def _sentence(error: MarkedYAMLError) -> str:
    return ": ".join(part for part in (error.context, error.problem) if part) or "this is not YAML"


def _mark_of(error: MarkedYAMLError) -> Mark:
    mark = error.problem_mark or error.context_mark
    return Mark(mark.line, mark.column) if mark else Mark(0, 0)


def _mark_at(text: str, position: int) -> Mark:
    before = text[:position]
    return Mark(before.count("\n"), position - (before.rfind("\n") + 1))


class _Composer:
    """Turns parser events into nodes; an alias gives the node its anchor named, shared and not copied."""

    def __init__(self, events: Iterator[Event]) -> None:
        self.events = events
        self.anchors: dict[str, Located] = {}

    def document(self) -> Located:
        event = self.next()
        if isinstance(event, StreamStartEvent):
            event = self.next()
        if isinstance(event, StreamEndEvent):
            raise Refused("empty_document", "the definition is empty", "Begin with `tidemark: 1`.", Mark(0, 0))
        if isinstance(event, DocumentStartEvent) and (event.version or event.tags):
            raise Refused("tag_not_allowed", "directives (`%`) are not allowed", "Leave it out.", Mark(0, 0))
        root = self.node(self.next(), 0)
        self.next()
        if not isinstance(after := self.next(), StreamEndEvent):
            raise Refused(
                "yaml_syntax",
                "a definition is one document, and another one begins here",
                "Remove `---`.",
                _mark(after),
            )
        return root

    def next(self) -> Event:
        return next(self.events)

    def node(self, event: Event, depth: int) -> Located:
        if depth > MAX_DEPTH:
            raise Refused(
                "too_deep", f"values are nested more than {MAX_DEPTH} deep", "Write it flatter.", _mark(event)
            )
        if isinstance(event, AliasEvent):
            return self.alias(event)
        assert isinstance(event, NodeEvent)
        if getattr(event, "tag", None) is not None:
            raise Refused("tag_not_allowed", "tags (`!name`) are not allowed", "Leave the tag out.", _mark(event))
        node = self.content(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def alias(self, event: AliasEvent) -> Located:
        if event.anchor not in self.anchors:
            raise Refused(
                "yaml_syntax",
                f"there is no anchor &{event.anchor} before this alias",
                "Write what it stands for.",
                _mark(event),
            )
        return self.anchors[event.anchor]

    def content(self, event: Event, depth: int) -> Located:
        if isinstance(event, ScalarEvent):
            return Located(_mark(event), _scalar(event, resolve if event.style is None else text_value), "scalar")
        if isinstance(event, SequenceStartEvent):
            return Located(_mark(event), list(self.items(depth)), "list")
        return Located(_mark(event), list(self.pairs(depth)), "mapping")

    def items(self, depth: int) -> Iterator[Located]:
        while not _closes(event := self.next()):
            yield self.node(event, depth + 1)

    def pairs(self, depth: int) -> Iterator[tuple[str, Mark, Located]]:
        while not _closes(event := self.next()):
            if not isinstance(event, ScalarEvent):
                raise Refused(
                    "yaml_syntax", "the name of a field must be plain text", "Write `name: value`.", _mark(event)
                )
            yield _scalar(event, text_value), _mark(event), self.node(self.next(), depth + 1)


def _scalar(event: ScalarEvent, meaning: Callable[[str], Scalar]) -> Scalar:
    try:
        return meaning(event.value)
    except ScalarError as error:
        raise Refused("bad_value", str(error), "Write it in quotes if it is text.", _mark(event)) from None


def _closes(event: Event) -> bool:
    return isinstance(event, (SequenceEndEvent, MappingEndEvent))


def _mark(event: Event) -> Mark:
    return Mark(event.start_mark.line, event.start_mark.column, getattr(event, "style", None))


class _Flattened:
    """Plain data and marks by path; aliases are expanded here, and counted."""

    def __init__(self) -> None:
        self.values: dict[Path, Mark] = {}
        self.keys: dict[Path, Mark] = {}
        self.problems: list[Problem] = []

    def add(self, node: Located, path: Path, depth: int) -> object:
        self.values[path] = node.mark
        if len(self.values) > MAX_VALUES:
            raise Refused(
                "too_large",
                f"the definition has more than {MAX_VALUES} values",
                "Anchors that are used many times multiply what they stand for.",
                node.mark,
            )
        if depth > MAX_DEPTH:
            raise Refused("too_deep", f"values are nested more than {MAX_DEPTH} deep", "Write it flatter.", node.mark)
        if node.kind == "list":
            return [self.add(item, (*path, index), depth + 1) for index, item in enumerate(node.content)]
        return self.mapping(node, path, depth) if node.kind == "mapping" else node.content

    def mapping(self, node: Located, path: Path, depth: int) -> dict[str, object]:
        data: dict[str, object] = {}
        for name, mark, value in node.content:
            if name in data:
                self.duplicate(name, path, mark)
                continue
            self.keys[(*path, name)] = mark
            data[name] = self.add(value, (*path, name), depth + 1)
        return data

    def duplicate(self, name: str, path: Path, again: Mark) -> None:
        first = self.keys[(*path, name)]
        code = "duplicate_id" if len(path) == 1 and path[0] in SECTIONS_OF_IDS else "duplicate_field"
        message = f"`{name}` is given twice: first at line {first.line + 1}, column {first.column + 1}"
        self.problems.append(Problem(code, message, "Keep one of them.", (*path, name), mark=again))
