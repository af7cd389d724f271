"""The driver's end of the control plane: messages and status out, commands in. Without one there is only a pipe."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.report.commands import AnyCommand, CommandThread, result_of
from tidemark.data_plane.report.control_client import ControlClient
from tidemark.data_plane.report.heartbeat import HeartbeatThread
from tidemark.data_plane.report.outbox import Outbox
from tidemark.data_plane.state.lookup import look_up
from tidemark.data_plane.state.savepoint import take_savepoint
from tidemark.protocol.control import StateGet, Stop, TakeSavepoint
from tidemark.protocol.message import Message
from tidemark.protocol.messages import RunSpec
from tidemark.protocol.start import ControlEndpoint
from tidemark.protocol.status import DriverStatus

_FAREWELL_SECONDS = 10.0


class ControlLink:
    """Beats from the start of the process; takes commands once there is a job to carry them out."""

    def __init__(self, spec: RunSpec, endpoint: ControlEndpoint, leave: Callable[[int], None] = os._exit) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self._outbox = Outbox()
        self._job: JobDriver | None = None
        self._commands: CommandThread | None = None
        self._last_savepoint: TakeSavepoint | None = None
        client = ControlClient(endpoint, spec.attempt)
        self._heartbeat = HeartbeatThread(client, self._outbox, self._status, leave)
        self._heartbeat.start()

    def send(self, message: Message) -> None:
        self._outbox.send(message)

    def attach(self, job: JobDriver) -> None:
        self._job = job
        self._commands = CommandThread(ControlClient(self._endpoint, self._spec.attempt), self.carry_out)
        self._commands.start()

    def carry_out(self, command: AnyCommand) -> dict[str, Any] | None:
        assert self._job is not None
        match command:
            case Stop():
                self._job.ask_stop()
                return {}
            case TakeSavepoint(then_stop=True):
                self._last_savepoint = command
                self._job.ask_stop()
                return None
            case TakeSavepoint():
                return self._save(command)
            case StateGet():
                return look_up(self._spec, self._job.spark, command.operator, command.key)

    def stopped(self) -> None:
        """The job has stopped at an epoch boundary: the savepoint that waited for it is taken, and answered."""
        if self._commands is not None:
            self._commands.close()
        if (command := self._last_savepoint) is not None:
            result = result_of(command.id, lambda: self._save(command))
            client = ControlClient(self._endpoint, self._spec.attempt)
            if result is not None:
                client.result(result)
            client.close()

    def close(self) -> None:
        """Gives the last messages some time to arrive."""
        if self._commands is not None:
            self._commands.close()
        self._heartbeat.close(_FAREWELL_SECONDS)

    def _save(self, command: TakeSavepoint) -> dict[str, Any]:
        manifest = take_savepoint(self._spec, command.savepoint_id, command.location)
        return {**manifest.summary(), "location": command.location}

    def _status(self) -> DriverStatus:
        return self._job.status if self._job else DriverStatus(state="STARTING")
