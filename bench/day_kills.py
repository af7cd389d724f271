"""Kills under load: of the server, which the drivers must not notice, and of a driver, many times over."""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import threading
import time
from pathlib import Path

from bench.day_jobs import Feed, Oracle, Shape, differences, file_rows, narrow
from bench.day_report import Report, percentile
from bench.day_script import settle
from bench.day_server import Server, wait_until

DRIVER_KILLS = 20
RECOVERY_SECONDS = 30.0
ADOPTION_SECONDS = 10.0
QUIET_SECONDS = 20.0
# Epochs are not equally long; a driver that waited for its server would stand still for as long as it is away.
UNEVENNESS = 1.0
QUERY = "per_minute"


class Kills:
    def __init__(self, folder: Path, report: Report) -> None:
        self._folder = folder
        self._report = report
        self._server = Server(folder)
        self._feed = Feed(folder)
        self._job = ""

    def run(self) -> None:
        self._server.start()
        self._feed.start()
        try:
            self._job = self._server.submit(narrow(Shape()))
            self._server.wait_beyond(self._job, {QUERY: 5})
            self._kill_the_server()
            self._kill_the_driver_many_times()
            self._compare()
        finally:
            self._feed.stop()
            self._server.close()

    def _kill_the_server(self) -> None:
        """Twenty quiet seconds, then the kill and as many seconds again: how far apart were commits?"""
        begun = time.time()
        _pass(QUIET_SECONDS)
        killed = time.time()
        self._server.end(signal.SIGKILL)
        _pass(QUIET_SECONDS / 2)
        away = time.time()
        self._server.start()
        adopted = self._adoption(away)
        _pass(QUIET_SECONDS / 2)
        commits = self._server.commit_times(self._job, QUERY)
        before, across = longest_gap(commits, begun, killed), longest_gap(commits, killed, time.time())
        self._report.check(
            "commits go on while the server is dead",
            across <= before + UNEVENNESS,
            f"longest gap {before:.2f} s before, {across:.2f} s across; "
            f"{sum(killed < at < away for at in commits)} epochs in the {away - killed:.0f} s without a server",
        )
        self._report.check(
            "the job is adopted by the next server",
            adopted <= ADOPTION_SECONDS and self._server.job(self._job)["attempt"] == 1,
            f"{adopted:.1f} s from its start",
        )

    def _adoption(self, since: float) -> float:
        """Until the new server shows an epoch that was committed after its start."""

        def adopted() -> bool:
            job = self._server.job(self._job)
            written = [sink["last_commit_at"] for sink in job["sinks"] if sink["last_commit_at"]]
            return job["state"] == "RUNNING" and any(at > _moment(since) for at in written)

        wait_until(adopted, "the job is adopted")
        return time.time() - since

    def _kill_the_driver_many_times(self) -> None:
        took = sorted(self._kill_the_driver() for _ in range(DRIVER_KILLS))
        p95 = percentile(took, 95)
        figure = f"p50 {statistics.median(took):.1f} s, p95 {p95:.1f} s, longest {took[-1]:.1f} s"
        self._report.check(f"{DRIVER_KILLS} kills of a driver: next committed epoch", p95 <= RECOVERY_SECONDS, figure)
        restarts = self._server.job(self._job)["restarts"]
        self._report.check("each kill was one restart", restarts == DRIVER_KILLS, f"{restarts} restarts")

    def _kill_the_driver(self) -> float:
        """From the kill to the commit of the next epoch, by the clock of the disk."""
        attempt = self._server.job(self._job)["attempt"]
        os.killpg(self._server.driver(self._job), signal.SIGKILL)
        killed = time.time()
        took = self._server.next_commit(self._job, QUERY, killed) - killed
        wait_until(lambda: self._is_told_of(attempt + 1), "the server hears of the epoch")
        self._report.note(f"attempt {attempt + 1} committed {took:.1f} s after the kill")
        return took

    def _is_told_of(self, attempt: int) -> bool:
        """Whether the server knows of an epoch of that attempt; only such a one ends a row of crashes."""
        job = self._server.wait_for(self._job, "RUNNING")
        return bool(job["attempt"] == attempt and job["epoch"] and job["epoch"]["duration_ms"] is not None)

    def _compare(self) -> None:
        self._feed.close()
        expected = Oracle(self._feed.batches).per_minute(clicks=False)
        settle(lambda: len(file_rows(self._folder / "narrow")) >= len(expected))
        wrong = differences(file_rows(self._folder / "narrow"), expected, "biggest")
        self._report.same("the results equal the oracle", wrong, f"{len(expected)} rows")


def longest_gap(commits: list[float], begin: float, end: float) -> float:
    """The longest time between two commits, or between a commit and the limits given."""
    inside = [begin, *(at for at in commits if begin < at < end), end]
    return max(later - earlier for earlier, later in itertools.pairwise(inside))


def _pass(seconds: float) -> None:
    """Lets the job go on for a while: this is what is measured, nothing is waited for."""
    threading.Event().wait(seconds)


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
