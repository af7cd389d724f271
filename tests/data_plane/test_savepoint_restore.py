"""A savepoint taken under load, restored elsewhere with another parallelism, leads to the results of one quiet run."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from data_plane.moving_jobs import MovingJob
from faults import workload
from pyspark.sql import SparkSession

from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.state.rescale import checkpoints
from tidemark.data_plane.state.savepoint import take_savepoint
from tidemark.generations import Generations
from tidemark.protocol.messages import EpochCommitted, Warned
from tidemark.protocol.start import Rescale, Restore
from tidemark.savepoints.verify import verify

pytestmark = [pytest.mark.semantics, pytest.mark.slow]


@pytest.fixture(scope="module")
def input_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("input")
    workload.prepare(folder)
    return folder / "in"


@dataclass(frozen=True)
class Saved:
    """A job that ran to its end, and the savepoint that was taken of it in the middle."""

    job: MovingJob
    location: str
    contents: dict[str, list[str]]


@pytest.fixture(scope="module")
def saved(spark: SparkSession, input_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("saved")
    job, location = MovingJob(spark, input_folder, folder / "job"), str(folder / "savepoints" / "s1")
    taken = threading.Event()

    def save(message: EpochCommitted, driver: JobDriver) -> None:
        if message.epoch >= 2 and not taken.is_set():
            taken.set()
            take_savepoint(job.spec(), "s1", location)

    job.run(drain=True, on_epoch=save)
    return Saved(job, location, job.contents())


def test_a_savepoint_under_load_goes_on_elsewhere_with_another_parallelism(saved: Saved, tmp_path: Path) -> None:
    manifest = verify(saved.location)
    assert set(manifest.queries) == set(workload.QUERIES)
    job = MovingJob(saved.job.spark, saved.job.input, tmp_path, lineage="second")
    job.run(drain=True, prepare=Restore(location=saved.location, parallelism=3))
    after = job.contents()
    # What the first job had delivered by then is in its sinks alone; what came after is in both, and nothing else.
    assert {sink: sorted({*rows, *after[sink]}) for sink, rows in saved.contents.items()} == saved.contents
    assert 0 < workload.totals(after)["visits_log"] < workload.totals(saved.contents)["visits_log"]
    assert {
        each.parallelism() for each in checkpoints(job.spec().plan, Generations(tmp_path / "state").current).values()
    } == {3}


def test_a_rescaled_job_gives_the_same_results(saved: Saved, tmp_path: Path) -> None:
    job = MovingJob(saved.job.spark, saved.job.input, tmp_path)
    job.run_until(1)
    job.run_until(2, prepare=Rescale(parallelism=3))
    messages = job.run(drain=True, prepare=Rescale(parallelism=1))
    assert not [message for message in messages if isinstance(message, Warned)]
    assert job.contents() == saved.contents
