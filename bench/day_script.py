"""The scripted day of a job over REST: watched, saved under load, canceled, restored wider, and upgraded twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.day_jobs import (
    WITH_BIGGEST,
    Feed,
    Oracle,
    Row,
    Shape,
    differences,
    file_rows,
    narrow,
    strict_from,
    table_rows,
    tick_differences,
    ticks,
    wide,
)
from bench.day_report import Report
from bench.day_server import Server, wait_until

BATCHES_AHEAD = 60
BATCHES_AT_THE_END = 20


@dataclass
class Actor:
    """One job of the day through all its changes."""

    name: str
    definition: Callable[[Shape], str]
    rebuilt: dict[str, str]
    job_id: str = ""
    shape: Shape = field(default_factory=Shape)
    saved: str = ""
    epochs: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.definition(self.shape)


class Day:
    def __init__(self, folder: Path, report: Report) -> None:
        self._folder = folder
        self._report = report
        self._server = Server(folder)
        self._feed = Feed(folder)
        self._strict_from = 0
        self._actors = (
            Actor("narrow", narrow, {"per_minute": "rebuilt"}),
            Actor("wide", wide, {"per_minute": "rebuilt", "moving": "kept"}),
        )
        self._bystander = ""

    def run(self) -> None:
        self._server.start()
        self._feed.start()
        try:
            for scene in SCENES:
                self._report.title(scene.__name__.strip("_").replace("_", " "))
                scene(self)
        finally:
            self._feed.stop()
            self._server.close()

    def _submit_three_jobs(self) -> None:
        self._bystander = self._server.submit(ticks(datetime.now(UTC)))
        for actor in self._actors:
            actor.job_id = self._server.submit(actor.text)

    def _watch_them(self) -> None:
        for actor in self._actors:
            job = self._server.wait_beyond(actor.job_id, dict.fromkeys(actor.rebuilt, 2))
            watermark = self._server.call("GET", f"/jobs/{actor.job_id}/watermark")
            shown = {query["query"] for query in watermark["queries"]}
            self._report.check(
                f"{actor.name} runs and explains its watermark", shown == set(actor.rebuilt), job["watermark"]
            )
        self._server.wait_beyond(self._bystander, {"per_second": 2})
        running = self._server.call("GET", "/jobs", state="RUNNING")["jobs"]
        self._report.check("three jobs are listed as running", len(running) == 3)

    def _savepoint_under_load(self) -> None:
        for actor in self._actors:
            before = self._server.epochs(actor.job_id)
            savepoint = self._server.call("POST", f"/jobs/{actor.job_id}/savepoint")["savepoint_id"]
            found = self._completed(savepoint)
            job = self._server.wait_beyond(actor.job_id, before)
            self._report.check(
                f"{actor.name} is saved while it goes on",
                job["attempt"] == 1,
                f"epoch {found['epoch']}, {found['bytes'] / 1024:.0f} KiB",
            )

    def _cancel_with_a_final_savepoint(self) -> None:
        for actor in self._actors:
            actor.saved = self._server.call("DELETE", f"/jobs/{actor.job_id}", savepoint=True)["savepoint_id"]
            self._server.wait_for(actor.job_id, "CANCELED")
            found = self._completed(actor.saved)
            actor.epochs = self._server.epochs(actor.job_id)
            self._report.check(
                f"the final savepoint of {actor.name} has its last epochs",
                found["epoch"] == max(actor.epochs.values()),
                str(actor.epochs),
            )

    def _restore_at_another_parallelism(self) -> None:
        for actor in self._actors:
            actor.shape = replace(actor.shape, parallelism=3)
            actor.job_id = self._server.submit(actor.text, from_savepoint=actor.saved)
        for actor in self._actors:
            job = self._server.wait_beyond(actor.job_id, actor.epochs)
            self._report.check(
                f"{actor.name} goes on with three key groups", (job["parallelism"], job["attempt"]) == (3, 1)
            )

    def _upgrade_with_a_changed_filter(self) -> None:
        """The stricter part begins with a batch that is not fed before the upgrade runs."""
        self._strict_from = self._feed.batches + BATCHES_AHEAD
        self._feed.hold_at(self._strict_from)
        for actor in self._actors:
            actor.shape = replace(actor.shape, where=strict_from(self._strict_from))
        self._upgrade({actor.name: dict.fromkeys(actor.rebuilt, "kept") for actor in self._actors})
        self._feed.hold_at(None)

    def _upgrade_with_a_new_aggregate(self) -> None:
        wait_until(lambda: self._feed.batches > self._strict_from + BATCHES_AT_THE_END, "events for the new filter")
        for actor in self._actors:
            actor.shape = replace(actor.shape, aggregate=WITH_BIGGEST)
        self._upgrade({actor.name: actor.rebuilt for actor in self._actors})

    def _compare_with_the_oracle(self) -> None:
        fed = self._feed.batches
        wait_until(lambda: self._feed.batches > fed + BATCHES_AT_THE_END, "events for the new aggregate")
        self._feed.close()
        oracle = Oracle(self._feed.batches, self._strict_from)
        for actor in self._actors:
            expected = oracle.per_minute(clicks=actor.name == "wide")
            self._compare_minutes(actor.name, expected)
        moving = oracle.moving()
        self._compare("wide.moving_log", lambda: table_rows(self._folder / "wide.db", "moving"), moving)
        bad = len(file_rows(self._folder / "wide_bad"))
        self._report.check("wide.bad holds every broken record once", bad == oracle.bad(), f"{bad} rows")

    def _look_at_the_bystander(self) -> None:
        job = self._server.job(self._bystander)
        self._report.check("the third job was never disturbed", (job["attempt"], job["restarts"]) == (1, 0))
        self._report.same("its windows are whole and follow each other", *tick_differences(self._folder))

    # --- parts of scenes --------------------------------------------------------------------------------------

    def _completed(self, savepoint: str) -> dict[str, Any]:
        def completed() -> dict[str, Any] | None:
            found = self._server.call("GET", f"/savepoints/{savepoint}")
            if found["state"] == "FAILED":
                raise RuntimeError(f"savepoint {savepoint} failed: {found}")
            return found if found["state"] == "COMPLETED" else None

        return wait_until(completed, f"savepoint {savepoint} completed") or {}

    def _upgrade(self, expected: dict[str, dict[str, str]]) -> None:
        """All jobs at once, each to the shape it now has; what is expected is the verdict on each query."""
        before = [(self._server.job(actor.job_id)["attempt"], self._put(actor)) for actor in self._actors]
        for actor, (attempt, verdicts) in zip(self._actors, before, strict=True):
            self._server.wait_beyond(actor.job_id, self._server.epochs(actor.job_id), attempt + 1)
            self._judge(actor, verdicts, expected[actor.name])

    def _put(self, actor: Actor) -> list[dict[str, str]]:
        """The verdicts of a dry run and of the upgrade itself."""
        tried = self._server.call("PUT", f"/jobs/{actor.name}", actor.text, dry_run=True)
        done = self._server.call("PUT", f"/jobs/{actor.name}", actor.text)
        return [{query["id"]: query["verdict"] for query in answer["queries"]} for answer in (tried, done)]

    def _judge(self, actor: Actor, verdicts: list[dict[str, str]], expected: dict[str, str]) -> None:
        fallen_back = [event["cause"] for event in self._server.events(actor.job_id) if event["kind"] == "fallback"]
        self._report.check(
            f"{actor.name} is upgraded",
            verdicts == [expected, expected] and not fallen_back,
            str(fallen_back or verdicts[1]),
        )

    def _compare_minutes(self, name: str, expected: list[Row]) -> None:
        """Windows that closed before the new aggregate came lack it; all later ones, open or not then, have it."""
        self._compare(f"{name}.out", lambda: file_rows(self._folder / name), expected, "biggest")
        found = [row for row in file_rows(self._folder / name) if "biggest" in row]
        begun = min((row["window_start"] for row in found), default="9999")
        later = [row for row in expected if row["window_start"] >= begun]
        enough = 0 < len(found) < len(expected)
        wrong = differences(found, later) or ("" if enough else f"{len(found)} of {len(expected)} rows have it")
        self._report.same(f"{name}.out has the new aggregate from the rebuilt windows on", wrong, f"{len(found)} rows")

    def _compare(self, what: str, read: Callable[[], list[Row]], expected: list[Row], *ignored: str) -> None:
        settle(lambda: len(read()) >= len(expected))
        wrong = differences(read(), expected, *ignored)
        self._report.same(f"{what} equals the oracle", wrong, f"{len(expected)} rows")


def settle(done: Callable[[], bool]) -> None:
    """Waits for the last rows; what is missing then is found by the comparison that follows."""
    try:
        wait_until(done, "the last rows", 120)
    except TimeoutError as problem:
        print(problem)


SCENES: tuple[Callable[[Day], None], ...] = (
    Day._submit_three_jobs,
    Day._watch_them,
    Day._savepoint_under_load,
    Day._cancel_with_a_final_savepoint,
    Day._restore_at_another_parallelism,
    Day._upgrade_with_a_changed_filter,
    Day._upgrade_with_a_new_aggregate,
    Day._compare_with_the_oracle,
    Day._look_at_the_bystander,
)
