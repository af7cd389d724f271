"""What may be read by Spark's own JSON reader: files in which every line ends with its first closing brace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemark.connectors.files.flat_json import is_flat

LINE = b'{"id": "a", "n": 1}'


def written(folder: Path, content: bytes) -> str:
    file = folder / "events 1.jsonl"
    file.write_bytes(content)
    return f"file://{file}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        LINE,
        LINE + b"\n",
        LINE + b"\n" + LINE,
        (LINE + b"\n") * 20_000,
        '{"id": "ä€😀"}\n'.encode(),
        b'{"broken": }\n',
    ],
)
def test_files_of_flat_objects_are_flat(tmp_path: Path, content: bytes) -> None:
    assert is_flat(written(tmp_path, content))


@pytest.mark.parametrize(
    "line",
    [
        LINE + b" trailing",
        LINE + b" ",
        LINE + LINE,
        LINE + b"\r",
        b"",
        b"garbage",
        b"[]",
        b"[" + LINE + b"]",
        b'{"inner": {"n": 1}}',
        b'{"id": "}"}',
        b'{"id": "\xff"}',
        b"\xef\xbb\xbf" + LINE,
        LINE.decode().encode("utf-16-le"),
        b'{"id": "\x00"}',
    ],
)
def test_any_other_line_makes_a_file_one_to_decode(tmp_path: Path, line: bytes) -> None:
    good = (LINE + b"\n") * 10_000
    assert not is_flat(written(tmp_path, good + line + b"\n" + good))


def test_a_line_is_judged_whole_wherever_it_begins(tmp_path: Path) -> None:
    """Lines of every length up to a few hundred, so that reading stops at every place in a line."""
    lines = [json.dumps({"id": "x" * (n % 997)}).encode() for n in range(5_000)]
    assert is_flat(written(tmp_path, b"\n".join(lines)))
    lines[-2] += b" and more"
    assert not is_flat(written(tmp_path, b"\n".join(lines)))


def test_a_file_that_is_not_local_is_to_be_decoded() -> None:
    assert not is_flat("hdfs://host/events.jsonl")
