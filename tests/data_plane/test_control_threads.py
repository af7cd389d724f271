"""Heartbeats and commands against a real server: which may be away, come back elsewhere, or refuse."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from data_plane.control_server import ControlServer
from support.waiting import wait_until

from tidemark.data_plane.report.commands import AnyCommand, CommandThread
from tidemark.data_plane.report.control_client import ControlClient
from tidemark.data_plane.report.heartbeat import HeartbeatThread
from tidemark.data_plane.report.outbox import Outbox
from tidemark.errors import UsageError
from tidemark.protocol.control import FENCED_EXIT_CODE, StateGet, Stop
from tidemark.protocol.messages import Warned
from tidemark.protocol.status import DriverStatus


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ControlServer]:
    server = ControlServer(tmp_path)
    server.start()
    yield server
    server.stop()


def beating(server: ControlServer, outbox: Outbox, left: list[int] | None = None) -> HeartbeatThread:
    leave = (left if left is not None else []).append
    client = ControlClient(server.endpoint, attempt=1)
    thread = HeartbeatThread(client, outbox, lambda: DriverStatus(state="RUNNING"), leave, interval=0.2)
    thread.start()
    return thread


def warning(text: str) -> Warned:
    return Warned(code="w", message=text)


def test_it_beats_without_news_and_tells_messages_once(server: ControlServer) -> None:
    outbox = Outbox()
    thread = beating(server, outbox)
    outbox.send(warning("one"))
    wait_until(lambda: len(server.heartbeats) > 3)
    thread.close(5)
    assert [sent.seq for heartbeat in server.heartbeats for sent in heartbeat.messages] == [1]
    assert server.status == DriverStatus(state="RUNNING")


def test_what_is_not_acknowledged_is_told_again(server: ControlServer) -> None:
    server.answers_messages = False
    outbox = Outbox()
    thread = beating(server, outbox)
    outbox.send(warning("one"))
    wait_until(lambda: sum(len(heartbeat.messages) for heartbeat in server.heartbeats) > 1)
    server.answers_messages = True
    wait_until(outbox.is_empty)
    thread.close(5)
    assert server.messages == {1: warning("one")}


def test_a_server_that_comes_back_elsewhere_hears_what_it_missed(server: ControlServer) -> None:
    outbox = Outbox()
    thread = beating(server, outbox)
    wait_until(lambda: server.heartbeats)
    server.stop()
    outbox.send(warning("while it was away"))
    server.start()
    wait_until(outbox.is_empty)
    thread.close(5)
    assert server.messages == {1: warning("while it was away")}


def test_the_last_messages_are_told_at_the_end(server: ControlServer) -> None:
    outbox = Outbox()
    thread = beating(server, outbox)
    wait_until(lambda: server.heartbeats)
    outbox.send(warning("last"))
    thread.close(10)
    assert server.messages == {1: warning("last")}


def test_a_server_that_is_away_for_good_does_not_hold_the_end_up(tmp_path: Path) -> None:
    outbox = Outbox()
    thread = beating(ControlServer(tmp_path), outbox)
    outbox.send(warning("nobody hears"))
    thread.close(0.5)
    assert not outbox.is_empty()


def test_a_fenced_driver_leaves_at_once(server: ControlServer) -> None:
    server.fence = True
    left: list[int] = []
    thread = beating(server, Outbox(), left)
    wait_until(lambda: left)
    thread.close(5)
    assert left[0] == FENCED_EXIT_CODE


def test_a_wrong_token_is_no_reason_to_leave(server: ControlServer) -> None:
    endpoint = server.endpoint.model_copy(update={"token": "wrong"})
    left: list[int] = []
    thread = HeartbeatThread(
        ControlClient(endpoint, attempt=1), Outbox(), lambda: DriverStatus(state="RUNNING"), left.append, interval=0.1
    )
    thread.start()
    wait_until(lambda: server.refused > 1)
    thread.close(5)
    assert (left, server.heartbeats) == ([], [])


def test_commands_are_carried_out_once_each_and_answered(server: ControlServer) -> None:
    done: list[int] = []

    def carry_out(command: AnyCommand) -> dict[str, int]:
        done.append(command.id)
        if isinstance(command, StateGet):
            raise UsageError("no such operator")
        return {"did": command.id}

    thread = CommandThread(ControlClient(server.endpoint, attempt=1), carry_out, wait=5, pause=0.05)
    thread.start()
    server.ask(Stop(id=1))
    assert server.result(1).result == {"did": 1}
    server.ask(StateGet(id=2, operator="o", key="k"))
    failure = server.result(2).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("usage", "no such operator")
    thread.close()
    assert done == [1, 2]


def test_a_result_waits_for_a_server_that_is_away(server: ControlServer) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def carry_out(command: AnyCommand) -> dict[str, int]:
        begun.set()
        assert go_on.wait(30)
        return {}

    thread = CommandThread(ControlClient(server.endpoint, attempt=1), carry_out, wait=5, pause=0.05)
    thread.start()
    server.ask(Stop(id=1))
    assert begun.wait(30)
    server.stop()
    go_on.set()
    server.start()
    assert server.result(1).ok
    thread.close()
