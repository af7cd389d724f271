"""A real Kafka broker (KRaft, one node) on loopback, from the locked jars: for tests and for a laptop.

It can be stopped, killed, started again on the same port and data, and frozen. Topics are made and read with the
helpers in `kafka_topics.py`.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tidemark import jars, prepared
from tidemark.errors import EnvironmentFault
from tidemark.java import require_java
from tidemark.testing.ports import HOST, free_ports

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_HEAP = ("-Xms64m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Ends the broker when whoever started it is gone without a word: its end of the pipe then closes.
_GUARD = 'read line && exit 0; kill -9 "-$1"'
# One node, so everything has one replica; nothing is ever deleted for its age, which may be an old event's.
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Else a broker that was killed is kept out for nine seconds when it comes back.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "500",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class KafkaBroker:
    """A context manager: up on entry; on exit its processes are gone, and its data too unless `data` was given.

    `listeners` adds protected ones by name, as `{"SASL_SSL": {setting: value}}`: the settings of that listener
    without its prefix. `scram_users` are (name, password) pairs for SCRAM. `settings` are the broker's own.
    With `archive_classes_to`, Java writes the classes it has used into that file when the broker is stopped.
    """

    def __init__(
        self,
        data: Path | None = None,
        port: int | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, Mapping[str, str]] | None = None,
        scram_users: Mapping[str, str] | None = None,
        archive_classes_to: Path | None = None,
    ) -> None:
        self._keeps_data = data is not None
        self._data = data or Path(tempfile.mkdtemp(prefix="tidemark-kafka-"))
        self._settings = dict(settings or {})
        self._listeners = {name: dict(values) for name, values in (listeners or {}).items()}
        self._scram_users = dict(scram_users or {})
        self._archive_classes_to = archive_classes_to
        taken = free_ports(2 + len(self._listeners))
        self._ports = {"PLAINTEXT": port or taken.pop(), **{name: taken.pop() for name in self._listeners}}
        self._controller = taken.pop()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    # --- where it is ------------------------------------------------------------------------------------------

    @property
    def servers(self) -> str:
        """The address for clients, in plain text."""
        return self.address("PLAINTEXT")

    def address(self, listener: str) -> str:
        return f"{HOST}:{self._ports[listener]}"

    @property
    def log(self) -> Path:
        return self._data / "broker.log"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # --- its life ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._clean()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._keeps_data:
            self.stop()
        self._clean()

    def start(self) -> None:
        """Returns when the broker answers; raises EnvironmentFault with its last words when it does not."""
        classpath = os.pathsep.join(map(str, jars.require(jars.BROKER)))
        self._data.mkdir(parents=True, exist_ok=True)
        properties = self._write_properties()
        with self.log.open("ab") as log:
            if not (self._data / "log" / "meta.properties").exists():
                self._format(classpath, properties, log.fileno())
            command = [*_java(self._archive_classes_to), "-cp", classpath, "kafka.Kafka", str(properties)]
            self._process = _in_own_group(command, log.fileno())
        guard = ["sh", "-c", _GUARD, "guard", str(self._process.pid)]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)
        self._wait_until_up()

    def stop(self) -> None:
        """An orderly end; killed when it takes too long."""
        if self.alive:
            self.resume()
            self._signal(signal.SIGTERM)
            try:
                self._reap(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._dismiss_guard()

    def kill(self) -> None:
        """`kill -9`: whatever was in flight is lost."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._reap(STOP_SECONDS)
        self._dismiss_guard()

    def restart(self) -> None:
        """Up again on the same ports and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freezes it: connections stay, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait(self) -> int:
        """Until it ends by itself."""
        assert self._process is not None, "the broker is not running"
        return self._process.wait()

    # --- the machinery ----------------------------------------------------------------------------------------

    def _write_properties(self) -> Path:
        names = ",".join(f"{name}://{self.address(name)}" for name in self._ports)
        protocols = [f"{name}:{name}" for name in self._ports]
        settings = {
            **_SETTINGS,
            "listeners": f"{names},CONTROLLER://{HOST}:{self._controller}",
            "advertised.listeners": names,
            "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.quorum.voters": f"1@{HOST}:{self._controller}",
            "log.dirs": str(self._data / "log"),
            **self._settings,
        }
        for name, values in self._listeners.items():
            settings |= {f"listener.name.{name.lower()}.{key}": value for key, value in values.items()}
        path = self._data / "server.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in settings.items()), encoding="latin-1")
        return path

    def _format(self, classpath: str, properties: Path, log: int) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*_java(), "-cp", classpath, "kafka.tools.StorageTool", "format"]
        command += [f"--cluster-id={cluster}", "--config", str(properties)]
        for name, password in self._scram_users.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                command += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
        done = subprocess.run(command, stdout=log, stderr=log, check=False)
        if done.returncode:
            raise self._failed("could not prepare its data folder")

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0, "reconnect.backoff.max.ms": 250})
        while not _answers(client):
            if not self.alive or time.monotonic() > deadline:
                self.kill()
                raise self._failed("did not come up")

    def _failed(self, what: str) -> EnvironmentFault:
        words = self.log.read_text(errors="replace").strip().splitlines()[-3:]
        return EnvironmentFault(f"the Kafka broker {what}: {' | '.join(words)}", hint="is the port taken?")

    def _signal(self, number: signal.Signals) -> None:
        """To the whole group; an end that came first is fine."""
        if self.alive:
            os.killpg(self.pid, number)

    def _reap(self, seconds: float) -> None:
        assert self._process is not None
        self._process.wait(seconds)
        self._process = None

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.communicate(b"done\n")
            self._guard = None

    def _clean(self) -> None:
        self.kill()
        if not self._keeps_data:
            shutil.rmtree(self._data, ignore_errors=True)


def class_archive() -> Path:
    """Where set-up puts the broker's classes as Java has them in memory: it then starts in half the time."""
    return prepared.folder() / "broker-classes.jsa"


def _java(archive_classes_to: Path | None = None) -> list[str]:
    archive = class_archive()
    if archive_classes_to is not None:
        option = [f"-XX:ArchiveClassesAtExit={archive_classes_to}"]
    else:
        option = [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []
    return [require_java(), *_HEAP, *option]


def _in_own_group(command: list[str], log: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _answers(client: AdminClient) -> bool:
    try:
        return bool(client.list_topics(timeout=0.5).brokers)
    except KafkaException:
        return False


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
