"""Plain data to YAML and JSON text that `read` gives back unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from tidemark.compiler.definition.scalars import ScalarError, resolve

WIDTH = 120
_PLAIN = re.compile(r"[A-Za-z_$/][A-Za-z0-9_$/.<>(), *+=|'-]*[A-Za-z0-9_$/.>)]|[A-Za-z_$]")
_FLOW_UNSAFE = re.compile(r"[,<>(){}\[\]]")
_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def to_json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")


def to_yaml(data: Mapping[str, object]) -> str:
    """Block style, two spaces; lists and mappings of scalars on one line when they are short."""
    return "".join(f"{line}\n" for line in _mapping(data, ""))


def _mapping(data: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, value in data.items():
        yield from _entry(f"{indent}{_text(name, flow=False)}:", value, f"{indent}  ")


def _entry(head: str, value: object, indent: str) -> Iterator[str]:
    flow = _flow(value)
    if not _members(value) or (len(head) + len(flow) < WIDTH and not any(map(_members, _members(value)))):
        yield f"{head} {flow}"
        return
    yield head
    if isinstance(value, Mapping):
        yield from _mapping(value, indent)
    else:
        for item in _members(value):
            yield from _item(item, indent)


def _item(item: object, indent: str) -> Iterator[str]:
    """A mapping begins on the line of its dash."""
    lines = list(_entry(f"{indent}-", item, f"{indent}  "))
    if lines[0] == f"{indent}-" and isinstance(item, Mapping):
        lines[:2] = [f"{indent}- {lines[1].removeprefix(f'{indent}  ')}"]
    yield from lines


def _members(value: object) -> Sequence[object]:
    """What a mapping or a list holds; nothing for a scalar or an empty one."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, (list, tuple)) else ()


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(name, flow=True)}: {_flow(item)}" for name, item in value.items()) + "}"
    if isinstance(value, str):
        return _text(value, flow=True)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return json.dumps(value, allow_nan=False)


def _text(value: str, *, flow: bool) -> str:
    plain = _PLAIN.fullmatch(value) and _stays_text(value) and not (flow and _FLOW_UNSAFE.search(value))
    return value if plain else _quoted(value)


def _stays_text(value: str) -> bool:
    try:
        return resolve(value) == value
    except ScalarError:
        return False


def _quoted(value: str) -> str:
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
