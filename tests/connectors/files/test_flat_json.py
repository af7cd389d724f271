"""What may be read by Spark's own JSON reader: files in which every line ends with its first closing brace.

The lines are counted, because that reader leaves out without a word what it cannot read.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemark.connectors.files.flat_json import flat_lines

LINE = b'{"id": "a", "n": 1}'


def written(folder: Path, content: bytes) -> str:
    file = folder / "events 1.jsonl"
    file.write_bytes(content)
    return f"file://{file}"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", 0),
        (LINE, 1),
        (LINE + b"\n", 1),
        (LINE + b"\n" + LINE, 2),
        ((LINE + b"\n") * 200_000, 200_000),
        ('{"id": "ä€😀"}\n'.encode(), 1),
        (b'{"broken": }\n', 1),
        (b"}\n}", 2),
    ],
)
def test_lines_of_flat_objects_are_counted(tmp_path: Path, content: bytes, lines: int) -> None:
    assert flat_lines([written(tmp_path, content)]) == lines


def test_the_lines_of_several_files_are_counted_together(tmp_path: Path) -> None:
    names = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        names.append(written(tmp_path / str(number), (LINE + b"\n") * number))
    assert flat_lines(names) == 3
    Path(names[1].removeprefix("file://")).write_bytes(LINE + LINE)
    assert flat_lines(names) is None


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
    good = (LINE + b"\n") * 100_000
    assert flat_lines([written(tmp_path, good + line + b"\n" + good)]) is None
    assert flat_lines([written(tmp_path, line + b"\n" + good)]) is None


def test_a_line_is_judged_whole_wherever_it_begins(tmp_path: Path) -> None:
    """Lines of every length up to a few hundred, so that reading stops at every place in a line."""
    lines = [json.dumps({"id": "x" * (n % 997)}).encode() for n in range(10_000)]
    assert flat_lines([written(tmp_path, b"\n".join(lines))]) == len(lines)
    lines[-2] += b" and more"
    assert flat_lines([written(tmp_path, b"\n".join(lines))]) is None


def test_a_file_that_is_not_local_is_to_be_decoded() -> None:
    assert flat_lines(["hdfs://host/events.jsonl"]) is None
