"""Failpoints: which of them strike, and that a strike is a SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.data_plane.failpoints import POINTS, STRUCK, VARIABLE, Failpoints

QUERY = "visits"
Killed = list[tuple[int, int]]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Killed:
    """What would have been killed, and how."""
    kills: Killed = []
    monkeypatch.setattr(os, "kill", lambda pid, number: kills.append((pid, number)))
    return kills


def reached(chosen: str, attempt: int, point: str, epoch: int, killed: Killed) -> bool:
    killed.clear()
    Failpoints(chosen, QUERY, attempt).reach(point, epoch)
    assert set(killed) <= {(os.getpid(), signal.SIGKILL)}
    return bool(killed)


def test_nothing_strikes_unless_chosen(killed: Killed) -> None:
    assert not any(reached("", 1, point, 0, killed) for point in POINTS)


@pytest.mark.parametrize("point", POINTS)
def test_a_point_strikes_at_its_epoch_only(point: str, killed: Killed) -> None:
    assert [reached(f"{point}@2", 1, point, epoch, killed) for epoch in range(4)] == [False, False, True, False]
    assert not any(reached(f"{point}@2", 1, other, 2, killed) for other in POINTS if other != point)


def test_without_an_epoch_any_epoch_will_do(killed: Killed) -> None:
    assert reached("mid_sink", 1, "mid_sink", 17, killed)


def test_a_restarted_driver_is_not_struck_again(killed: Killed) -> None:
    assert reached("mid_sink@0", 1, "mid_sink", 0, killed)
    assert not reached("mid_sink@0", 2, "mid_sink", 0, killed)


def test_each_attempt_of_a_list_has_its_own_point(killed: Killed) -> None:
    chosen = "after_log@0#1,mid_sink@1#2,between_sinks#3"
    assert reached(chosen, 1, "after_log", 0, killed)
    assert not reached(chosen, 1, "mid_sink", 1, killed)
    assert reached(chosen, 2, "mid_sink", 1, killed)
    assert not reached(chosen, 2, "after_log", 0, killed)
    assert reached(chosen, 3, "between_sinks", 9, killed)
    assert not any(reached(chosen, 4, point, 1, killed) for point in POINTS)


def test_a_point_of_another_query_does_not_strike(killed: Killed) -> None:
    assert reached("visits:mid_sink@0", 1, "mid_sink", 0, killed)
    assert not reached("per_minute:mid_sink@0", 1, "mid_sink", 0, killed)


def test_a_point_of_one_sink_does_not_strike_in_another(killed: Killed) -> None:
    points = Failpoints("visits_table:mid_sink", QUERY, 1)
    points.reach("mid_sink", 0)
    points.reach("mid_sink", 0, "visits_topic")
    assert killed == []
    points.reach("mid_sink", 0, "visits_table")
    assert killed == [(os.getpid(), signal.SIGKILL)]


@pytest.mark.parametrize(
    "chosen", ["mid_snik", "mid_sink@", "mid_sink@x", "mid_sink#", "mid_sink#1@2", "@1", "a b", ":mid_sink"]
)
def test_what_cannot_be_read_is_refused_with_the_points(chosen: str) -> None:
    with pytest.raises(ValueError, match="after_log, mid_sink"):
        Failpoints(chosen, QUERY, 1)


def test_a_strike_ends_the_process_there_and_then() -> None:
    program = (
        "from tidemark.data_plane.failpoints import Failpoints\n"
        "points = Failpoints.from_environment('visits', attempt=2)\n"
        "points.reach('mid_sink', 0); print('before', flush=True)\n"
        "points.reach('mid_sink', 1); print('after', flush=True)\n"
    )
    environment = {**os.environ, VARIABLE: "mid_sink@1#2"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == "before\n"
    assert "struck at visits:mid_sink@1" in done.stderr


def test_a_file_arms_a_running_driver_once_whatever_its_attempt(killed: Killed, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    points = Failpoints(str(armed), QUERY, attempt=7)
    points.reach("mid_sink", 3)
    assert killed == []
    armed.write_text("visits:mid_sink\n")
    points.reach("after_log", 4)
    Failpoints(str(armed), "per_minute", attempt=7).reach("mid_sink", 4)
    assert killed == []
    points.reach("mid_sink", 4)
    points.reach("mid_sink", 5)
    assert killed == [(os.getpid(), signal.SIGKILL)]
    assert not armed.exists()
    assert Path(f"{armed}{STRUCK}").exists()


def test_a_driver_can_be_frozen_instead(killed: Killed, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    armed.write_text("between_sinks!SIGSTOP")
    Failpoints(str(armed), QUERY, attempt=1).reach("between_sinks", 0)
    assert killed == [(os.getpid(), signal.SIGSTOP)]
