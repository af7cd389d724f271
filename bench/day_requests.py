"""How fast a server answers while its jobs run: a list of fifty, and a hundred requests a second for one of them.

The requests are sent by the clock, whether or not those before were answered, and each one's time counts from the
moment it should have been sent: an answer that is late makes the next ones late too, and that shows.
"""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from bench.day_jobs import ticks
from bench.day_report import Report, percentile
from bench.day_server import Server

JOBS, RUNNING = 50, 3
# An epoch a second: until Java has compiled what they do all the time, three drivers take most of two cores.
WARM_EPOCHS = 40
# Not in step with the epochs. Of two hundred, the last one in a hundred says little.
LISTS, LIST_PAUSE_SECONDS = 200, 0.13
RATE, SECONDS = 100, 60
CLIENTS = 24
LIMIT_SECONDS = 0.1
_ANSWER_SECONDS = 30.0


class Requests:
    def __init__(self, folder: Path, report: Report) -> None:
        self._report = report
        self._server = Server(folder)

    def run(self) -> None:
        self._server.start()
        try:
            running = [self._server.submit(_job(f"running-{number}")) for number in range(RUNNING)]
            for number in range(JOBS - RUNNING):
                self._server.submit(_job(f"resting-{number}"), start=False)
            for job_id in running:
                self._server.wait_beyond(job_id, {"per_second": WARM_EPOCHS})
            self._list()
            self._show(running)
        finally:
            self._server.close()

    def _list(self) -> None:
        answered = []
        for _ in range(LISTS):
            answered.append(self._listed())
            time.sleep(LIST_PAUSE_SECONDS)
        _judge(self._report, f"{JOBS} jobs are listed", answered, percent=95)

    def _listed(self) -> float:
        begun = time.monotonic()
        found = self._server.call("GET", "/jobs", limit=JOBS)["jobs"]
        took = time.monotonic() - begun
        if len(found) != JOBS:
            raise RuntimeError(f"{len(found)} jobs are listed, not {JOBS}")
        return took

    def _show(self, job_ids: list[str]) -> None:
        schedule = _Schedule([f"/jobs/{job_id}" for job_id in job_ids], str(self._server.http.base_url))
        answered = schedule.run()
        _judge(self._report, f"{RATE} requests/s for a job, {SECONDS} s", answered, percent=99)
        self._report.note(f"of that, until it could be sent: {_figures(schedule.sent)}")
        self._report.check("every request is answered well", not schedule.bad, f"{len(schedule.bad)} are not")


@dataclass
class _Schedule:
    """Request n is due at `n / RATE`; whichever client is free takes the next one.

    `sent` is by how much each went out late: on a machine that is busy, the clients wait for their turn as well.
    """

    paths: list[str]
    url: str
    bad: list[int] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    _taken: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answered: list[float] = field(default_factory=list)
    _begun: float = 0.0

    def run(self) -> list[float]:
        """The seconds from when each was due to its answer."""
        self._begun = time.monotonic()
        clients = [threading.Thread(target=self._client) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        return self._answered

    def _client(self) -> None:
        place = urlsplit(self.url)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=_ANSWER_SECONDS)
        while (number := self._next()) is not None:
            due = self._begun + number / RATE
            threading.Event().wait(max(0.0, due - time.monotonic()))
            late = time.monotonic() - due
            connection.request("GET", self.paths[number % len(self.paths)])
            answer = connection.getresponse()
            answer.read()
            took = time.monotonic() - due
            with self._lock:
                self._answered.append(took)
                self.sent.append(late)
                if answer.status != 200:
                    self.bad.append(answer.status)
        connection.close()

    def _next(self) -> int | None:
        with self._lock:
            number = self._taken
            self._taken += 1
        return number if number < RATE * SECONDS else None


def _job(name: str) -> str:
    text = ticks(datetime.now(UTC))
    return text.replace("name: ticks", f"name: {name}").replace("path: ticks.db", f"path: {name}.db")


def _judge(report: Report, what: str, seconds: list[float], percent: int) -> None:
    figure = f"{len(seconds)} times, {_figures(seconds)} (limit: p{percent} below {LIMIT_SECONDS * 1000:.0f} ms)"
    report.check(what, percentile(seconds, percent) < LIMIT_SECONDS, figure)


def _figures(seconds: list[float]) -> str:
    figures = {
        "median": statistics.median(seconds),
        "p95": percentile(seconds, 95),
        "p99": percentile(seconds, 99),
        "longest": max(seconds),
    }
    return ", ".join(f"{name} {value * 1000:.1f} ms" for name, value in figures.items())
