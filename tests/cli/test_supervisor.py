"""Following a driver to its end: crashes, restarts, stops, garbage, and nothing left running."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cli.driving import CRASH, FINISH, SERVE, Scenario, Step, scenario
from support.processes import is_alive
from support.waiting import wait_until

from tidemark.cli.driver_process import DriverProcess
from tidemark.cli.supervisor import End, Heard, Patience, StopRequest, Supervisor, judge
from tidemark.driver_log import DriverLog
from tidemark.processes import kill_marked
from tidemark.protocol.messages import Accounting, AnyMessage, Ended, Failed, Failure

QUICK = Patience(first_pause=0.01, longest_pause=0.04, farewell=0.5)


@dataclass
class Log:
    messages: list[AnyMessage] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def hear(self, message: AnyMessage) -> None:
        self.messages.append(message)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def kinds(self) -> list[str]:
        return [message.kind for message in self.messages]


@dataclass
class Stage:
    """A supervisor of a fake driver, run in this thread or another."""

    folder: Path
    script: Scenario
    log: Log = field(default_factory=Log)
    stop: StopRequest = field(default_factory=StopRequest)
    attempts: Any = field(default_factory=lambda: count(1))

    def start(self) -> DriverProcess:
        attempt = next(self.attempts)
        spec = self.folder / "run.json"
        spec.write_text(f'{{"attempt": {attempt}}}')
        log = DriverLog(self.folder / "driver.log", self.folder / "secrets.json")
        return DriverProcess(self.script.command, spec, log=log, mark=f"{self.folder}/{attempt}", environment={})

    def run(self, patience: Patience = QUICK) -> End:
        return Supervisor(self.start, self.log, self.stop, "see the log", patience).run()


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    return Stage(tmp_path, scenario(tmp_path, request.param))


def starts(**steps: list[Step]) -> pytest.MarkDecorator:
    named = {name.removeprefix("start").replace("s", "*"): value for name, value in steps.items()}
    return pytest.mark.parametrize("stage", [named], indirect=True, ids=[""])


def failing(retry: str, domain: str, message: str = "no", code: str = "sink_failed") -> list[Step]:
    return [["started"], ["failed", code, domain, retry, message], ["exit", 1]]


@starts(start1=FINISH)
def test_an_orderly_end_is_the_end(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert stage.log.kinds() == ["started", "epoch", "epoch", "epoch", "ended"]
    assert stage.log.notices == []


@starts(start1=CRASH, start2=[["exit", 3]], start3=FINISH)
def test_a_killed_driver_is_started_again_with_a_new_attempt(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert stage.script.attempts() == [1, 2, 3]
    assert "SIGKILL" in stage.log.notices[0]
    assert "exit code 3" in stage.log.notices[1]


@starts(start1=[["failed", "engine_failed", "internal", "restart", "the JVM is gone"], ["exit", 1]], start2=FINISH)
def test_a_failure_that_a_restart_may_cure_is_a_crash(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert stage.script.attempts() == [1, 2]


@pytest.mark.parametrize(
    "stage",
    [
        {"*": failing("never", "user")},
        {"*": failing("never", "internal", code="fenced")},
        {"*": failing("restart", "user")},
    ],
    indirect=True,
    ids=["user", "fenced", "user, whatever its retry says"],
)
def test_a_failure_for_good_is_not_retried(stage: Stage) -> None:
    end = stage.run()
    assert (end.state, end.crashed) == ("FAILED", False)
    assert end.failure
    assert end.failure.message == "no"
    assert stage.script.attempts() == [1]


@starts(start1=failing("restart", "internal", "the first"), starts=[["exit", 7]])
def test_five_crashes_without_an_epoch_are_the_end_and_the_first_is_shown(stage: Stage) -> None:
    end = stage.run()
    assert end.state == "FAILED"
    assert end.failure
    assert end.failure.message == "the first"
    assert stage.script.attempts() == [1, 2, 3, 4, 5]


@starts(
    start1=CRASH,
    start2=CRASH,
    start3=CRASH,
    start4=CRASH,
    start5=[["started"], ["epoch", 0], ["exit", 9]],
    starts=CRASH,
)
def test_a_committed_epoch_starts_the_count_again(stage: Stage) -> None:
    end = stage.run()
    assert end.failure
    assert end.failure.message == "the driver ended with exit code 9 and no last word"
    assert len(stage.script.attempts()) == 9


def test_the_pause_doubles_up_to_its_limit() -> None:
    assert [Patience().pause(crashes) for crashes in range(1, 8)] == [0.5, 1, 2, 4, 8, 10, 10]


@starts(
    start1=[["garbage", "\xff\x00 not json\n{}\n[1]\n"], ["garbage", '{"kind": "epo'], ["garbage", "ch\n"], *FINISH]
)
def test_garbage_on_the_pipe_is_noticed_once_and_passed_over(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert len(stage.log.notices) == 1
    assert stage.log.kinds()[-1] == "ended"


@starts(start1=[["garbage", "x" * 300_000], ["garbage", "\n"], *FINISH, ["garbage", '{"kind": "star']])
def test_long_and_half_lines_do_no_harm(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")


@starts(start1=[["console", "y" * 3_000_000], ["ended", "FINISHED"]])
def test_a_large_message_arrives_whole(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert stage.log.messages[0].model_dump()["text"] == "y" * 3_000_000


@starts(start1=[["child"], ["started"], ["kill"]], start2=FINISH)
def test_what_a_killed_driver_started_is_gone_before_the_next_attempt(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    (left,) = stage.script.diary("child")
    assert not is_alive(left["child"])


@starts(start1=[["child"], ["started"], ["ended", "FINISHED"], ["ignore_everything"]])
def test_a_driver_that_does_not_leave_after_its_last_word_is_ended(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert not is_alive(stage.script.diary("child")[0]["child"])
    assert not is_alive(stage.script.diary("child")[0]["pid"])


@starts(start1=[["started"], ["ended", "FINISHED"], ["kill"]])
def test_a_crash_after_the_last_word_does_not_undo_it(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")


@starts(start1=[["exit", 0]], start2=FINISH)
def test_leaving_without_a_word_is_a_crash(stage: Stage) -> None:
    assert stage.run() == End("FINISHED")
    assert stage.script.attempts() == [1, 2]


def in_background(stage: Stage, patience: Patience = QUICK) -> tuple[threading.Thread, list[End]]:
    ends: list[End] = []
    thread = threading.Thread(target=lambda: ends.append(stage.run(patience)))
    thread.start()
    return thread, ends


@starts(start1=SERVE)
def test_a_stop_waits_for_the_end_of_the_epoch(stage: Stage) -> None:
    thread, ends = in_background(stage)
    wait_until(lambda: stage.script.diary("serving"))
    stage.stop.ask()
    thread.join(10)
    assert ends == [End("STOPPED")]
    assert stage.script.diary("stopped")


@starts(start1=[["started"], ["child"], ["ignore_everything"]])
def test_a_second_stop_kills(stage: Stage) -> None:
    thread, ends = in_background(stage)
    wait_until(lambda: stage.script.diary("serving"))
    stage.stop.ask()
    wait_until(lambda: stage.log.notices)
    assert thread.is_alive()
    stage.stop.ask()
    thread.join(10)
    assert ends[0].state == "FAILED"
    assert not is_alive(stage.script.diary("child")[0]["child"])


@starts(starts=CRASH)
def test_a_stop_during_the_pause_ends_the_run_at_once(stage: Stage) -> None:
    thread, ends = in_background(stage, Patience(first_pause=60))
    wait_until(lambda: stage.log.notices)
    stage.stop.ask()
    thread.join(10)
    assert ends == [End("STOPPED")]
    assert stage.script.attempts() == [1]


@starts(start1=[["sleep", 60]])
def test_a_stop_before_the_driver_listens_is_a_stop(stage: Stage) -> None:
    thread, ends = in_background(stage)
    wait_until(lambda: stage.script.diary("start"))
    stage.stop.ask()
    thread.join(10)
    assert ends == [End("STOPPED")]


@starts(start1=SERVE, start2=FINISH)
def test_kill_9_of_a_working_driver(stage: Stage) -> None:
    thread, ends = in_background(stage)
    os.kill(wait_until(lambda: stage.script.diary("serving"))[0]["pid"], signal.SIGKILL)
    thread.join(10)
    assert ends == [End("FINISHED")]


def test_signals_are_requests_only_inside() -> None:
    before = signal.getsignal(signal.SIGINT)
    stop = StopRequest()
    with stop.on_signals():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert stop.count == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_only_marked_processes_are_killed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, scenario(tmp_path, {"*": SERVE}))
    ours, other = stage.start(), stage.start()
    try:
        wait_until(lambda: len(stage.script.diary("serving")) == 2)
        kill_marked(ours.mark)
        assert not is_alive(ours.pid)
        assert is_alive(other.pid)
    finally:
        ours.end(0)
        other.end(0)


FAILURE = Failure(code="c", domain="external", retry="restart", message="m")
ENDED = Ended(state="STOPPED", epochs=1, watermark=None, total=Accounting())


@pytest.mark.parametrize(
    ("exit_code", "heard", "state", "crashed"),
    [
        (0, Heard(last_word=ENDED), "STOPPED", False),
        (1, Heard(last_word=Failed(failure=FAILURE)), "FAILED", True),
        (1, Heard(last_word=Failed(failure=FAILURE), stops_sent=1), "FAILED", False),
        (1, Heard(), "FAILED", True),
        (-9, Heard(started=True, stops_sent=1), "FAILED", False),
        (-2, Heard(started=True, stops_sent=1), "STOPPED", False),
        (130, Heard(started=True, stops_sent=1), "STOPPED", False),
        (1, Heard(started=False, stops_sent=1), "STOPPED", False),
        (-2, Heard(started=True), "FAILED", True),
    ],
)
def test_the_verdict(exit_code: int, heard: Heard, state: str, crashed: bool) -> None:
    end = judge(exit_code, heard, "hint")
    assert (end.state, end.crashed) == (state, crashed)
