"""Every fault, as data: how it is made to happen, and how it is known that it did."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from faults.chaos.job import QUERIES
from faults.chaos.stage import Stage
from faults.running import PATIENCE, Run, driver_log, processes
from support.cut_connection import Relay
from support.processes import is_alive, is_stopped
from support.waiting import wait_until

from tidemark.data_plane.failpoints import POINTS
from tidemark.testing.ports import listens

RANDOM_SECONDS = 2.0
# An EndTxn request of librdkafka: its number, a version, the request's own number, the client's name.
END_OF_TRANSACTION = re.compile(rb"\x00\x1a\x00.{5}\x00\x07rdkafka", re.DOTALL)
COMMIT = b"COMMIT\0"


@dataclass(frozen=True)
class Struck:
    """A fault that happened: from `at`, and over (what was killed is dead, what must come back is back) by `over`.

    `evidence` says how that is known; `aftermath` is what remains to be done once the job has recovered.
    """

    at: float
    over: float
    evidence: str
    aftermath: Callable[[], str] | None = None


Fault = Callable[[Stage, Random], Struck]


# --- the driver ---------------------------------------------------------------------------------------------------


def at_failpoint(point: str, stage: Stage, chance: Random) -> Struck:
    """SIGKILL of the driver at this very line, in whichever query the dice choose."""
    query = chance.choice(QUERIES)
    driver = stage.run.driver()
    stage.arm(f"{query}:{point}")
    at = stage.wait_for_strike()
    wait_until(lambda: not is_alive(driver), PATIENCE)
    wait_until(lambda: f"struck at {query}:{point}@" in driver_log(stage.site), PATIENCE)
    return Struck(at, time.time(), f"{query}:{point}, driver {driver} died there")


def kill(which: tuple[str, ...], stage: Stage, chance: Random) -> Struck:
    """At any moment, wherever it is."""
    pids = {"driver": stage.run.driver(), "jvm": stage.run.jvm()}
    at = _at_any_moment(chance)
    for name in which:
        os.kill(pids[name], signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pids[name]) for name in which), PATIENCE)
    return Struck(at, time.time(), ", ".join(f"{name} {pids[name]}" for name in which) + " killed")


def kill_supervisor(stage: Stage, chance: Random) -> Struck:
    """Its driver must leave by itself; then somebody runs the command again."""
    old = stage.run
    at = _at_any_moment(chance)
    old.signal(signal.SIGKILL)
    assert old.wait().code == -signal.SIGKILL
    wait_until(lambda: not processes(old.folder), PATIENCE)
    stage.start(old.folder)
    return Struck(at, time.time(), "the command was killed, and its driver left by itself")


def zombie(at_step: str, refuser: str, stage: Stage, chance: Random) -> Struck:
    """A machine that freezes in the middle of an epoch, a successor on another one, and the first one waking up."""
    old = stage.run
    stage.arm(f"{at_step}!SIGSTOP")
    at = stage.wait_for_strike()
    driver = old.driver()
    # It stops itself a moment after it says so; woken up before that, it would stop for good.
    wait_until(lambda: is_stopped(driver), PATIENCE)
    old.signal(signal.SIGSTOP)
    os.killpg(driver, signal.SIGSTOP)
    stage.start(stage.move())
    return Struck(at, time.time(), f"driver {driver} frozen at {at_step}", partial(_wake, stage, old, driver, refuser))


def _wake(stage: Stage, old: Run, driver: int, refuser: str) -> str:
    """The other system is silent meanwhile: this one has to refuse the zombie by itself, which then leaves."""
    said = len(driver_log(old.folder))
    silence, speak = {
        "kafka": (stage.postgres.freeze, stage.postgres.thaw),
        "postgres": (stage.broker.pause, stage.broker.resume),
    }[refuser]
    silence()
    os.killpg(driver, signal.SIGCONT)
    old.signal(signal.SIGCONT)
    try:
        wait_until(old.has_ended, PATIENCE)
    finally:
        speak()
    outcome = old.wait()
    assert (outcome.code, outcome.summary["error"]["code"]) == (1, "fenced"), outcome
    refusers = refusers_in(driver_log(old.folder)[said:])
    assert refuser in refusers, f"refused by {refusers}, not by {refuser}"
    return f"woke up, was refused by {' and '.join(sorted(refusers))} and left"


def refusers_in(log: str) -> set[str]:
    """The connectors in whose code the driver was told that it is not its turn, by what it says of its failure."""
    told = [part.rpartition(".py")[0] for part in log.split("tidemark.errors.Fenced: attempt")[:-1]]
    return {name for name in ("kafka", "postgres") for text in told if text.endswith(f"connectors/{name}/ledger")}


# --- what it writes to --------------------------------------------------------------------------------------------


def kill_broker(stage: Stage, chance: Random) -> Struck:
    before = stage.broker.pid
    at = _at_any_moment(chance)
    stage.broker.kill()
    assert not is_alive(before)
    stage.broker.start()
    return Struck(at, time.time(), f"broker {before} killed, {stage.broker.pid} is up on the same data")


def kill_postgres(stage: Stage, chance: Random) -> Struck:
    at = _at_any_moment(chance)
    stage.postgres.kill()
    assert not listens(stage.postgres.port)
    stage.postgres.start()
    return Struck(at, time.time(), "all processes of the server killed, and it is up on the same data")


def cut_postgres(delivered: bool, stage: Stage, chance: Random) -> Struck:
    return _cut(stage.postgres_relay, COMMIT, delivered)


def cut_kafka(delivered: bool, stage: Stage, chance: Random) -> Struck:
    return _cut(stage.kafka_relay, END_OF_TRANSACTION, delivered)


def _cut(relay: Relay, words: bytes | re.Pattern[bytes], delivered: bool) -> Struck:
    """Ends the connection as the client asks for a commit: the server hears it and its answer is lost, or not even."""
    before = relay.cuts
    relay.delivered, relay.words = delivered, words
    wait_until(lambda: relay.cuts > before, PATIENCE, 0.005)
    at = time.time()
    return Struck(at, at, f"a connection was cut in commit, {'answer' if delivered else 'request'} lost")


def _at_any_moment(chance: Random) -> float:
    """The moment is the experiment: it depends on nothing."""
    threading.Event().wait(chance.uniform(0, RANDOM_SECONDS))
    return time.time()


FAULTS: dict[str, Fault] = {
    **{f"failpoint {point}": partial(at_failpoint, point) for point in POINTS},
    "kill driver": partial(kill, ("driver",)),
    "kill JVM": partial(kill, ("jvm",)),
    "kill driver and JVM": partial(kill, ("driver", "jvm")),
    "kill supervisor": kill_supervisor,
    "kill broker": kill_broker,
    "kill PostgreSQL": kill_postgres,
    "cut PostgreSQL, answer lost": partial(cut_postgres, True),
    "cut PostgreSQL, request lost": partial(cut_postgres, False),
    "cut Kafka, answer lost": partial(cut_kafka, True),
    "cut Kafka, request lost": partial(cut_kafka, False),
    "zombie in Kafka": partial(zombie, "totals_topic:mid_sink", "kafka"),
    "zombie in PostgreSQL": partial(zombie, "totals_topic:between_sinks", "postgres"),
}
