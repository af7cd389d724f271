"""The process behind a driver's output: rotates without losing or cutting a line, and lets no secret through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tidemark.driver_log import LOG_WRITER
from tidemark.log_writer import LONGEST_LINE, RotatingLog


def start(log: Path, largest: int, kept: int, *secrets: str, **environment: str) -> subprocess.Popen[bytes]:
    places = [str(LOG_WRITER), str(log), str(largest), str(kept), str(log.with_name("secrets.json"))]
    command = [sys.executable, "-I", *places, *secrets]
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)


def parts(log: Path) -> list[bytes]:
    """The oldest first."""
    found = sorted(log.parent.glob(f"{log.name}*"), key=_age, reverse=True)
    return [path.read_bytes() for path in found]


def _age(part: Path) -> int:
    return int(part.suffix[1:]) if part.suffix != ".log" else 0


def test_every_line_is_whole_and_in_order_over_all_parts(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    lines = b"".join(b"line %d %s\n" % (number, b"x" * (number % 50)) for number in range(20_000))
    writer = start(log, 100_000, 19)
    writer.communicate(lines)
    written = parts(log)
    assert len(written) > 3
    assert all(part.endswith(b"\n") for part in written)
    assert b"".join(written) == lines


def test_only_so_many_parts_are_kept(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "driver.log", largest=10, kept=2)
    for number in range(6):
        log.write(b"line %d\n" % number)
    assert parts(tmp_path / "driver.log") == [b"line 3\n", b"line 4\n", b"line 5\n"]


def test_two_writers_of_one_log_take_turns(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    writers = [start(log, 5_000, 9) for _ in range(2)]
    for number in range(500):
        for name, writer in zip((b"a", b"b"), writers, strict=True):
            assert writer.stdin is not None
            writer.stdin.write(b"%s %d\n" % (name, number))
            writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    lines = b"".join(parts(log)).splitlines()
    for name in (b"a", b"b"):
        assert [line for line in lines if line.startswith(name)] == [b"%s %d" % (name, n) for n in range(500)]


def test_values_of_secrets_are_replaced_by_their_names(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    writer = start(
        log, 10_000, 1, "PASSWORD", "URL", "SHORT", PASSWORD="tops3cret", URL="pg://u:tops3cret@h", SHORT="a"
    )
    writer.communicate(b"connect pg://u:tops3cret@h with tops3cret, a word")
    assert log.read_bytes() == b"connect $URL with $PASSWORD, a word\n"


def test_values_of_stored_secrets_are_replaced_too(tmp_path: Path) -> None:
    """The one in the environment as well, whichever the driver takes."""
    log = tmp_path / "driver.log"
    stored = {"PASSWORD": {"value": "st0red-one"}, "OTHER": {"value": "not of this job"}}
    (tmp_path / "secrets.json").write_text(json.dumps(stored))
    writer = start(log, 10_000, 1, "PASSWORD", PASSWORD="tops3cret")
    writer.communicate(b"st0red-one, tops3cret, not of this job")
    assert log.read_bytes() == b"$PASSWORD, $PASSWORD, not of this job\n"


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    writer = start(log, 10 * LONGEST_LINE, 1)
    writer.communicate(b"x" * (3 * LONGEST_LINE))
    assert log.read_bytes().replace(b"\n", b"") == b"x" * (3 * LONGEST_LINE)
