"""A savepoint taken under load, restored elsewhere with another parallelism, leads to the results of one quiet run."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from data_plane.moving_jobs import MovingJob
from faults import workload
from pyspark.sql import SparkSession

from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.state.lookup import look_up
from tidemark.data_plane.state.prepare import prepare_state, undo_unused_switch
from tidemark.data_plane.state.rescale import checkpoints
from tidemark.data_plane.state.savepoint import take_savepoint
from tidemark.errors import SavepointDamaged, UsageError
from tidemark.generations import Generations
from tidemark.protocol.message import Message
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
        if message.query == "per_minute" and message.epoch >= 1 and not taken.is_set():
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
    assert parallelism(job) == {3}


def test_a_damaged_savepoint_is_refused_before_anything_is_changed(saved: Saved, tmp_path: Path) -> None:
    shutil.copytree(saved.location, tmp_path / "s1")
    part = next((tmp_path / "s1").glob("queries/visits/state/0/0/*.changelog"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    job = MovingJob(saved.job.spark, saved.job.input, tmp_path / "job", lineage="second")
    with pytest.raises(SavepointDamaged, match="changelog was changed"):
        job.run(prepare=Restore(location=str(tmp_path / "s1")))
    assert list((tmp_path / "job" / "state").iterdir()) == []


def parallelism(job: MovingJob) -> set[int | None]:
    state = Generations(job.folder / "state").current
    return {each.parallelism() for each in checkpoints(job.spec().plan, state).values()}


def warnings(messages: list[Message]) -> list[str]:
    return [message.code for message in messages if isinstance(message, Warned)]


def test_a_rescaled_job_gives_the_same_results(saved: Saved, tmp_path: Path) -> None:
    job = MovingJob(saved.job.spark, saved.job.input, tmp_path)
    job.run_until(1)
    _check_lookups(job)
    _check_that_an_unused_rescale_can_be_undone(job)
    # As after a crash: the sinks hold an epoch that is not committed, which must be replayed as it was.
    (newest,) = {checkpoints(job.spec().plan, tmp_path / "state")["per_minute"].last_committed()}
    (tmp_path / "state" / "per_minute" / "commits" / str(newest)).unlink()
    assert warnings(job.run_until((newest or 0) + 2, prepare=Rescale(parallelism=3))) == []
    assert parallelism(job) == {3}
    # One that fails leaves the job as it is.
    assert warnings(job.run(drain=True, prepare=Rescale(parallelism=0))) == ["rescale_failed"]
    assert parallelism(job) == {3}
    assert job.contents() == saved.contents


def _check_lookups(job: MovingJob) -> None:
    spec = job.spec()
    minutes = look_up(spec, job.spark, "per_minute", "s1")
    assert minutes["entries"]
    for entry in minutes["entries"]:
        assert entry["window_start"] < entry["window_end"]
        assert entry["values"]["events"] > 0
        assert set(entry["values"]) == {"events", "revenue"}
    users = [look_up(spec, job.spark, "visits", json.dumps({"user": f"u{number}"})) for number in range(6)]
    sessions = [entry for user in users for entry in user["entries"]]
    assert all(entry["values"]["first_order"] for entry in sessions)
    rows = sum(entry["values"]["orders"] for entry in sessions)
    assert rows > 0
    assert look_up(spec, job.spark, "per_minute", "nobody")["entries"] == []
    for operator, key in (("once", "o1"), ("paid", "x"), ("per_minute", '{"shop": "s1"}')):
        with pytest.raises(UsageError):
            look_up(spec, job.spark, operator, key)


def _check_that_an_unused_rescale_can_be_undone(job: MovingJob) -> None:
    spec = job.spec(prepare=Rescale(parallelism=1))
    prepare_state(spec, job.spark, lambda message: None)
    assert parallelism(job) == {1}
    undo_unused_switch(spec)
    assert parallelism(job) == {2}
