"""A disk that is full, wherever it strikes: the job fails by that name and goes on when there is space again."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from data_plane.postgres_shop import Shop
from pyspark.sql import SparkSession

from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.report.classify import classify
from tidemark.errors import DiskFull, Retry, TidemarkError

pytestmark = pytest.mark.faults
DISK_KIB = 4096
FREE = 96 * 1024
ROWS = 3_000
JOB = """\
tidemark: 1
name: shop
parallelism: 2
sources:
  orders:
    files: {path: in, format: jsonl, max_files_per_epoch: 1}
    schema: {id: string, note: string}
sinks:
  out: {input: orders, SINK}
"""
SINKS = {
    "sqlite": "sqlite: {path: disk/out.db, table: t, mode: append}",
    "files": "files: {path: disk/out, format: jsonl}",
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, so that filling it hurts nobody."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KIB}k", "tidemark-test", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, free: int) -> Path:
    """Leaves that many bytes."""
    filler = disk / "filler"
    usage = os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, usage.f_bavail * usage.f_bsize - free)
    return filler


def write_input(folder: Path) -> None:
    folder.mkdir()
    for number in range(3):
        rows = [{"id": f"{number}-{n}", "note": f"{n:060}"} for n in range(ROWS)]
        path = folder / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)


def ids(name: str, shop: Shop) -> list[str]:
    if name == "files":
        return sorted(row["id"] for row in shop.files("disk/out"))
    with closing(sqlite3.connect(shop.folder / ("disk/out.db" if name == "sqlite" else "out.db"))) as connection:
        return sorted(id_ for (id_,) in connection.execute("SELECT id FROM t"))


@pytest.mark.parametrize("name", SINKS)
def test_a_full_disk_fails_the_job_by_name_and_nothing_is_lost(
    name: str, disk: Path, tmp_path: Path, spark: SparkSession
) -> None:
    write_input(tmp_path / "in")
    shop = Shop(spark, tmp_path, JOB.replace("SINK", SINKS[name]))
    filler = fill(disk, FREE)
    with pytest.raises(DiskFull) as caught:
        shop.drain()
    assert_goes_on(name, shop, caught.value, filler)


@pytest.mark.parametrize(("point", "epoch"), [("after_log", 0), ("after_epoch_record", 0), ("after_log", 1)])
def test_a_disk_that_fills_up_under_the_state_fails_the_job_by_name_and_nothing_is_lost(
    point: str, epoch: int, disk: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strike(self: Failpoints, reached: str, at: int, sink: str | None = None) -> None:
        if (reached, at) == (point, epoch):
            fill(disk, 0)

    write_input(tmp_path / "in")
    (disk / "state").mkdir()
    (tmp_path / "state").symlink_to(disk / "state")
    shop = Shop(spark, tmp_path, JOB.replace("SINK", "sqlite: {path: out.db, table: t, mode: append}"))
    with monkeypatch.context() as patched:
        patched.setattr(Failpoints, "reach", strike)
        with pytest.raises((DiskFull, OSError)) as caught:
            shop.drain()
    assert_goes_on("state", shop, classify(caught.value), disk / "filler")


def assert_goes_on(name: str, shop: Shop, failure: TidemarkError, filler: Path) -> None:
    assert type(failure) is DiskFull
    assert failure.retry is Retry.NEVER
    assert "space" in f"{failure.message} {failure.hint}"
    filler.unlink()
    assert shop.drain().state == "FINISHED"
    assert ids(name, shop) == sorted(f"{number}-{n}" for number in range(3) for n in range(ROWS))
