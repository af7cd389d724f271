"""Two drivers of one job: the older one, in the middle of an epoch, learns that it is over and writes nothing more."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from data_plane.driving_jobs import Shop, plan_of, write_input
from pyspark.sql import SparkSession

from tidemark.connectors.connector import Sink, SinkContext
from tidemark.connectors.runtime import SINKS
from tidemark.data_plane.failpoints import Failpoints
from tidemark.data_plane.job_driver import JobDriver
from tidemark.errors import Fenced

pytestmark = pytest.mark.faults

EPOCH = 1


class Paused:
    """Holds a driver at a failpoint of one epoch until it is told to go on."""

    def __init__(self, point: str) -> None:
        self._point = point
        self.there = threading.Event()
        self.go_on = threading.Event()

    def reach(self, point: str, epoch: int) -> None:
        if (point, epoch) == (self._point, EPOCH) and not self.there.is_set():
            self.there.set()
            assert self.go_on.wait(60)


def successors(shop: Shop, attempt: int) -> list[Sink]:
    """The sinks as the next driver opens them."""
    return [
        SINKS[plan.connector](
            SinkContext(
                shop.plan.job,
                shop.spec(attempt).lineage,
                sink,
                attempt,
                plan.columns,
                plan.options,
                shop.folder,
                lambda _: None,
                lambda _: None,
            )
        )
        for sink, plan in shop.plan.sinks.items()
    ]


@pytest.mark.parametrize("point", ["after_log", "between_sinks"])
def test_an_older_driver_is_fenced_in_the_middle_of_an_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    write_input(tmp_path / "in", 3)
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path)
    paused = Paused(point)
    monkeypatch.setattr(Failpoints, "reach", lambda self, point, epoch, sink=None: paused.reach(point, epoch))
    ends: list[Exception | str] = []

    def drive() -> None:
        try:
            ends.append(JobDriver(shop.spec(1), spark, lambda _: None).run().state)
        except Fenced as error:
            ends.append(error)

    older = threading.Thread(target=drive)
    older.start()
    assert paused.there.wait(120)
    opened = successors(shop, attempt=2)
    last = [sink.open() for sink in opened]
    before = shop.contents()
    paused.go_on.set()
    older.join(120)

    assert [type(end) for end in ends] == [Fenced], ends
    assert last[0] == (EPOCH if point == "between_sinks" else EPOCH - 1)
    assert shop.contents() == before
    for sink in opened:
        sink.close()


def test_a_successor_finishes_what_the_fenced_driver_began(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_input(tmp_path / "in", 3)
    (tmp_path / "plain").mkdir()
    plain = Shop(spark, plan_of(tmp_path / "in"), tmp_path / "plain")
    plain.drain(attempt=1)
    (tmp_path / "fenced").mkdir()
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path / "fenced")

    def take_over(self: Failpoints, point: str, epoch: int, sink: str | None = None) -> None:
        if (point, epoch) == ("between_sinks", EPOCH):
            for each in successors(shop, attempt=2):
                each.open()
                each.close()

    with monkeypatch.context() as patched:
        patched.setattr(Failpoints, "reach", take_over)
        with pytest.raises(Fenced, match="attempt 2 of this job has taken over from attempt 1"):
            shop.drain(attempt=1)
    assert shop.drain(attempt=3) == "FINISHED"
    assert shop.contents() == plain.contents()


def test_a_driver_older_than_the_last_one_cannot_start(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path / "in", 1)
    shop = Shop(spark, plan_of(tmp_path / "in"), tmp_path)
    for sink in successors(shop, attempt=5):
        sink.open()
        sink.close()
    with pytest.raises(Fenced, match="attempt 5"):
        shop.drain(attempt=4)
