"""TLS and SASL end to end: a job that logs in to read and to write, and one whose password is wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from connectors.kafka.running_jobs import KafkaJob
from pyspark.sql import SparkSession

from tidemark.java import require_java
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Record, Topics

PASSWORD = 'p"a\\s s;'
_STORE_PASSWORD = "only-for-this-test"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True)
class Secured:
    broker: KafkaBroker
    ca: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    store, ca = folder / "broker.p12", folder / "ca.pem"
    make_certificate(store, ca)
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    tls = {"ssl.keystore.location": str(store), "ssl.keystore.password": _STORE_PASSWORD, "ssl.keystore.type": "PKCS12"}
    listeners = {
        "SASL_SSL": {
            **tls,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "plain.sasl.jaas.config": f'{_PLAIN} required user_alice="{quoted}";',
            "scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
        }
    }
    with KafkaBroker(listeners=listeners, scram_users={"bob": "scram-secret"}) as broker:
        yield Secured(broker, ca)


def make_certificate(store: Path, certificate: Path) -> None:
    keytool = str(Path(require_java()).with_name("keytool"))
    common = ["-keystore", str(store), "-storepass", _STORE_PASSWORD, "-alias", "broker"]
    make = ["-genkeypair", "-keyalg", "EC", "-storetype", "PKCS12", "-dname", "CN=broker", "-ext", "san=ip:127.0.0.1"]
    subprocess.run([keytool, *make, *common], check=True, capture_output=True)
    subprocess.run(
        [keytool, "-exportcert", "-rfc", "-file", str(certificate), *common], check=True, capture_output=True
    )


def job_for(secured: Secured, name: str, login: str) -> str:
    at = f"servers: '{secured.broker.address('SASL_SSL')}', security: {{protocol: sasl_ssl, ca: {secured.ca}, {login}}}"
    return f"""\
tidemark: 1
name: secured
sources:
  events: {{kafka: {{topic: {name}, {at}}}, schema: {{n: int}}}}
sinks:
  out: {{input: events, kafka: {{topic: {name}-out, {at}}}}}
"""


@pytest.mark.parametrize(
    ("login", "password"),
    [
        ("mechanism: PLAIN, username: alice, password: $KAFKA_PASSWORD", PASSWORD),
        ("mechanism: SCRAM-SHA-256, username: bob, password: $KAFKA_PASSWORD", "scram-secret"),
    ],
    ids=["plain", "scram"],
)
def test_a_job_logs_in(
    login: str,
    password: str,
    secured: Secured,
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", password)
    topics = Topics(secured.broker.servers)
    topics.create(name)
    topics.produce(name, [Record(b'{"n": 5}')])
    job = KafkaJob(spark, tmp_path, job_for(secured, name, login))
    job.drain()
    assert [json.loads(record.value or b"") for record in topics.read(f"{name}-out")] == [{"n": 5}]
    kept = [path.read_text(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert kept
    assert not [text for text in kept if password in text]


def test_a_wrong_password_says_so_and_not_which(
    secured: Secured, spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "nonsense-password")
    login = "mechanism: PLAIN, username: alice, password: $KAFKA_PASSWORD"
    with KafkaJob(spark, tmp_path, job_for(secured, name, login)).running() as running:
        failure = running.wait_for_failure()
    assert failure.code == "sink_denied"
    assert "the login failed" in failure.message
    assert "`security`" in (failure.hint or "")
    assert "nonsense-password" not in failure.message + (failure.hint or "")
