"""Where the chaos job runs: a real broker and PostgreSQL behind relays, `tidemark run`, a feeder and a reader."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from faults.chaos.events import PARTITIONS
from faults.chaos.feeder import Feeder
from faults.chaos.job import DEFINITION, QUERIES, SCHEMA, TOPIC, TOPICS, ledger_topic
from faults.chaos.reader import CommittedReader
from faults.chaos.tables import Tables
from faults.running import PATIENCE, Outcome, Run, command_line, commits_by_query, job_folder, processes
from support.cut_connection import Relay, relay_to
from support.waiting import wait_until

from tidemark.data_plane.failpoints import STRUCK
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics
from tidemark.testing.ports import HOST, free_ports
from tidemark.testing.postgres_server import PostgresServer, running_postgres


@dataclass
class Stage:
    """`run` is the one that goes on; a successor on another machine takes its place."""

    folder: Path
    broker: KafkaBroker
    postgres: PostgresServer
    kafka_relay: Relay
    postgres_relay: Relay
    topics: Topics
    tables: Tables
    feeder: Feeder
    reader: CommittedReader
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._relayed = (self.kafka_relay.port, self.postgres_relay.port)

    @property
    def run(self) -> Run:
        return self.runs[-1]

    @property
    def site(self) -> Path:
        """The folder of the run that goes on."""
        return self.run.folder

    # --- the job ----------------------------------------------------------------------------------------------

    def start(self, site: Path | None = None) -> None:
        folder = site or self.folder / "site-1"
        folder.mkdir(exist_ok=True)
        (folder / "job.yaml").write_text(DEFINITION)
        password, _, place = self.postgres.url_of("chaos").rpartition(f"@{HOST}:{self.postgres.port}/")
        variables = {
            "KAFKA": f"{HOST}:{self.kafka_relay.port}",
            "PG": f"{password}@{HOST}:{self.postgres_relay.port}/{place}",
        }
        self.runs.append(Run(folder, failpoints=str(self.armed), variables=variables))

    def move(self) -> Path:
        """The job's folder as another machine would find it: it knows of no process here, and shares the attempts."""
        site = self.folder / f"site-{len(self.runs) + 1}"
        shutil.copytree(self.site, site, ignore=shutil.ignore_patterns("scratch", "lock", "run.json", "attempt"))
        (job_folder(site) / "attempt").symlink_to((job_folder(self.site) / "attempt").resolve())
        return site

    def stop(self) -> Outcome:
        self.run.signal(signal.SIGINT)
        return self.run.wait()

    def commits_after(self, moment: float) -> dict[str, float]:
        """When each query committed its first epoch after that moment, as far as they have."""
        found = {query: [at for at in epochs.values() if at > moment] for query, epochs in self._commits().items()}
        return {query: min(times) for query, times in found.items() if times}

    def wait_for_commits(self, moment: float) -> dict[str, float]:
        """Until every query has committed an epoch after that moment."""
        wait_until(lambda: len(self.commits_after(moment)) == len(QUERIES) or self.run.has_ended(), PATIENCE, 0.05)
        assert not self.run.has_ended(), f"the run ended: {self.run.words[-5:]}"
        return self.commits_after(moment)

    def _commits(self) -> dict[str, dict[int, float]]:
        return commits_by_query(self.site)

    def attempt(self) -> int:
        """The newest that was taken, also by one that did not get far."""
        taken = (job_folder(self.site) / "attempt").read_text().split()
        return int(taken[-2])

    def end_runs(self) -> None:
        for run in self.runs:
            run.end()

    # --- failpoints -------------------------------------------------------------------------------------------

    @property
    def armed(self) -> Path:
        return self.folder / "failpoint"

    def arm(self, strike: str) -> None:
        """The next driver that gets there is struck; in one step, so that nobody reads half of it."""
        self.struck.unlink(missing_ok=True)
        written = self.armed.with_name("failpoint.new")
        written.write_text(strike)
        written.rename(self.armed)

    def wait_for_strike(self) -> float:
        wait_until(lambda: self.struck.exists() or self.run.has_ended(), PATIENCE, 0.01)
        return self.struck.stat().st_ctime

    @property
    def struck(self) -> Path:
        return Path(f"{self.armed}{STRUCK}")

    # --- what is left behind ----------------------------------------------------------------------------------

    def driver_pids(self) -> list[int]:
        """The driver and its JVM, without the Python workers that come and go."""
        named = ("tidemark.data_plane", "org.apache.spark.deploy.SparkSubmit")
        return [pid for pid in processes(self.site) if any(name in command_line(pid) for name in named)]

    def left_behind(self) -> list[int]:
        """Processes of any run but the one that goes on."""
        others = {run.folder for run in self.runs} - {self.site}
        return [pid for folder in others for pid in processes(folder)]

    def ports(self) -> list[int]:
        return [int(self.broker.servers.rpartition(":")[2]), self.postgres.port, *self._relayed]


@contextmanager
def staged(folder: Path, seed: int) -> Iterator[Stage]:
    """Everything but the job, which `start` starts; nothing of it is left at the end of the block."""
    with ExitStack() as stack:
        relayed, kafka_port = free_ports(2)
        advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{relayed}"}
        broker = stack.enter_context(KafkaBroker(port=kafka_port, settings=advertised))
        postgres = stack.enter_context(running_postgres(durable=False))
        kafka_relay = stack.enter_context(relay_to(kafka_port, relayed))
        postgres_relay = stack.enter_context(relay_to(postgres.port))
        topics = Topics(f"{HOST}:{relayed}")
        partitions = _create_topics(topics)
        url = _create_tables(postgres)
        feeder = Feeder(f"{HOST}:{relayed}", seed)
        reader = CommittedReader(f"{HOST}:{relayed}", partitions)
        stack.callback(reader.stop)
        stack.callback(feeder.stop)
        stage = Stage(folder, broker, postgres, kafka_relay, postgres_relay, topics, Tables(url), feeder, reader)
        stack.callback(stage.end_runs)
        yield stage


def _create_topics(topics: Topics) -> dict[str, int]:
    """The source's topic, and the outputs with their ledgers, which a reader can follow from the beginning."""
    topics.create(TOPIC, PARTITIONS)
    outputs = dict.fromkeys(TOPICS.values(), PARTITIONS)
    ledgers = {ledger_topic(sink): 1 for sink in TOPICS}
    for topic, count in outputs.items():
        topics.create(topic, count)
    for topic in ledgers:
        topics.create(topic, 1, cleanup_policy="compact")
    return {**outputs, **ledgers}


def _create_tables(postgres: PostgresServer) -> str:
    url = postgres.create_database("chaos")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in SCHEMA:
            connection.execute(statement.encode())
    return url
