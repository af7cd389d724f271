"""Jobs go on from real checkpoints with half-written files in them, to the results of a job that had none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from data_plane.driving_jobs import Shop, plan_of, write_input
from pyspark.sql import SparkSession

pytestmark = pytest.mark.faults

FILES = 5
Damage = Callable[[Path, int], None]


@pytest.fixture(scope="module")
def input_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "in"
    write_input(folder, FILES)
    return folder


@pytest.fixture(scope="module")
def expected(spark: SparkSession, input_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    shop = Shop(spark, plan_of(input_folder), tmp_path_factory.mktemp("whole"))
    assert shop.drain(attempt=1) == "FINISHED"
    contents = shop.contents()
    assert len(contents["out"]) == 2 * FILES
    return contents


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, input_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A job that stopped in the middle; its newest epoch has emitted a window."""
    shop = Shop(spark, plan_of(input_folder), tmp_path_factory.mktemp("stopped"))
    assert shop.run_until(epoch=2, attempt=1) == "STOPPED"
    return shop


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")
    checksum(path).unlink(missing_ok=True)


def checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def half_a_commit(checkpoint: Path, newest: int) -> None:
    cut_in_half(checkpoint / "commits" / str(newest))


def empty_commit(checkpoint: Path, newest: int) -> None:
    empty(checkpoint / "commits" / str(newest))


def half_the_offsets_of_a_committed_epoch(checkpoint: Path, newest: int) -> None:
    cut_in_half(checkpoint / "offsets" / str(newest))


def empty_offsets_of_an_epoch_in_the_sinks(checkpoint: Path, newest: int) -> None:
    empty(checkpoint / "offsets" / str(newest))
    (checkpoint / "commits" / str(newest)).unlink()
    checksum(checkpoint / "commits" / str(newest)).unlink()


def half_a_commit_before_an_epoch_in_the_sinks(checkpoint: Path, newest: int) -> None:
    (checkpoint / "commits" / str(newest)).unlink()
    checksum(checkpoint / "commits" / str(newest)).unlink()
    cut_in_half(checkpoint / "commits" / str(newest - 1))


def half_the_offsets_of_an_epoch_that_never_ran(checkpoint: Path, newest: int) -> None:
    logged = checkpoint / "offsets" / str(newest + 1)
    logged.write_bytes((checkpoint / "offsets" / str(newest)).read_bytes())
    cut_in_half(logged)


def empty_checksums(checkpoint: Path, newest: int) -> None:
    for log in ("offsets", "commits"):
        checksum(checkpoint / log / str(newest)).write_bytes(b"")


def half_the_checksums(checkpoint: Path, newest: int) -> None:
    for log in ("offsets", "commits"):
        cut_in_half(checksum(checkpoint / log / str(newest)))


def half_an_identity_and_an_unused_listing(checkpoint: Path, newest: int) -> None:
    cut_in_half(checkpoint / "metadata")
    listed = max(int(path.stem) for path in (checkpoint / "sources" / "orders").glob("[0-9]*"))
    (checkpoint / "sources" / "orders" / str(listed + 1)).write_text('v1\n{"path":"file')


DAMAGES: tuple[Damage, ...] = (
    half_a_commit,
    empty_commit,
    half_the_offsets_of_a_committed_epoch,
    empty_offsets_of_an_epoch_in_the_sinks,
    half_a_commit_before_an_epoch_in_the_sinks,
    half_the_offsets_of_an_epoch_that_never_ran,
    empty_checksums,
    half_the_checksums,
    half_an_identity_and_an_unused_listing,
)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_half_written_file_does_not_stop_the_job_for_good(
    stopped: Shop, expected: dict[str, list[str]], tmp_path: Path, damage: Damage
) -> None:
    damaged = Shop(stopped.spark, stopped.plan, tmp_path / "job")
    shutil.copytree(stopped.folder, damaged.folder)
    newest = max(int(path.name) for path in (damaged.checkpoint / "commits").glob("[0-9]*"))
    damage(damaged.checkpoint, newest)
    assert damaged.drain(attempt=2) == "FINISHED"
    assert damaged.contents() == expected


def test_a_start_that_ended_before_its_first_epoch_was_logged_is_begun_again(
    stopped: Shop, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    """Spark has written its state and its listing of the first files by then."""
    begun = Shop(stopped.spark, stopped.plan, tmp_path / "job")
    for kept in ("state", "sources"):
        shutil.copytree(stopped.checkpoint / kept, begun.checkpoint / kept)
    assert begun.drain(attempt=2) == "FINISHED"
    assert begun.contents() == expected
