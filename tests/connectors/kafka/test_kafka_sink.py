"""What is special to the Kafka sink: keys, formats, topics it makes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from connectors.arrow_rows import ArrowRows, columns_of, context_for

from tidemark.connectors.kafka import faults
from tidemark.connectors.kafka import topics as topics_module
from tidemark.connectors.kafka.client import java_settings, login_configuration
from tidemark.connectors.kafka.ledger import Kept, Marker
from tidemark.connectors.kafka.sink import KafkaSink
from tidemark.errors import Fenced, SinkDenied, SinkFailure, SinkMismatch, SinkUnavailable
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics

COLUMNS = columns_of(k="string", n="long", b="binary")
ROWS = ArrowRows({"k": ["a", None], "n": pa.array([1, 2], pa.int64()), "b": [b"\xff", None]}, 10)


def options(broker: KafkaBroker, name: str, **more: Any) -> dict[str, Any]:
    return {"servers": broker.servers, "topic": name, "namespace": name, "format": "json", "key": (), **more}


def written(broker: KafkaBroker, topics: Topics, name: str, **more: Any) -> list[tuple[Any, Any]]:
    sink = KafkaSink(context_for(Path(), options(broker, name, **more), COLUMNS))
    sink.open()
    assert sink.write(0, ROWS) == 2
    sink.close()
    return [(record.key, record.value) for record in topics.read(name)]


def test_one_key_column_is_plain_text(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    records = written(kafka_broker, topics, name, key=("k",))
    assert [key for key, _ in records] == [b"a", None]
    assert [json.loads(value) for _, value in records] == [
        {"k": "a", "n": 1, "b": "/w=="},
        {"k": None, "n": 2, "b": None},
    ]


def test_several_key_columns_are_an_object(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    records = written(kafka_broker, topics, name, key=("k", "n"))
    assert [json.loads(key) for key, _ in records] == [{"k": "a", "n": 1}, {"k": None, "n": 2}]


def test_raw_bytes_and_a_tombstone(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    assert written(kafka_broker, topics, name, key=("k", "n"), format="raw")[0][1] == b"\xff"
    assert written(kafka_broker, topics, f"{name}-2", key=("n", "k"), format="raw")[1][1] is None


def test_a_ledger_that_forgets_is_refused(kafka_broker: KafkaBroker, topics: Topics, name: str) -> None:
    topics.create(f"{name}.job.out.ledger", cleanup_policy="delete")
    with pytest.raises(SinkMismatch, match=r"cleanup\.policy=delete"):
        KafkaSink(context_for(Path(), options(kafka_broker, name), COLUMNS)).open()


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "ADMIN_SECONDS", 0.5)
    given = {"servers": "127.0.0.1:9", "topic": "t", "namespace": "n", "format": "json", "key": ()}
    with pytest.raises(SinkUnavailable):
        KafkaSink(context_for(Path(), given, COLUMNS)).open()


def test_a_marker_goes_round_and_knows_two_epochs() -> None:
    marker = Marker(3).after(7, 70).after(9, 90)
    assert Marker.from_bytes(marker.to_bytes()) == marker
    assert (marker.held(7), marker.held(9), marker.held(8), marker.attempt) == (70, 90, None, 3)
    refusing = marker.after(10, 5, Kept(rows=2, pieces=3, offset=4))
    assert Marker.from_bytes(refusing.to_bytes()) == refusing
    assert refusing.after(11, 6).refused == Kept()


def test_a_marker_of_before_there_were_refused_rows_is_read() -> None:
    assert Marker.from_bytes(b'{"attempt": 3, "epoch": 7, "rows": 70}') == Marker(3, 7, 70)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, Fenced) for code in faults.FENCED),
        *((code, SinkDenied) for code in faults.DENIED),
        *((code, SinkMismatch) for code in faults.MISSING | faults.TOO_LARGE | faults.UNFIT),
        *((code, SinkUnavailable) for code in faults.UNAVAILABLE),
        (KafkaError._FS, SinkFailure),
    ],
)
def test_every_refusal_has_a_name_and_a_hint(code: int, kind: type[Exception]) -> None:
    fault = faults.sink_fault(KafkaError(code), "broker:9092", "orders", "out")
    assert type(fault) is kind
    assert (fault.step, bool(fault.hint)) == ("out", True)


@pytest.mark.parametrize("code", [*faults.FENCED, KafkaError._FATAL])
def test_a_producer_that_was_given_up_is_asked_whose_turn_it_is(code: int) -> None:
    """A row handed to a fenced producer is refused with `_FATAL`, which does not say that it is fenced."""
    assert faults.is_fenced(KafkaError(code))
    assert not faults.is_fenced(KafkaError(KafkaError._MSG_TIMED_OUT))


def test_a_login_cannot_break_out_of_its_quotes() -> None:
    security = {"mechanism": "PLAIN", "username": 'a" required x="', "password": 'p\\"w'}
    assert login_configuration(security).endswith('required username="a\\" required x=\\"" password="p\\\\\\"w";')


def test_the_java_client_gets_files_as_text(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    given = {"servers": "b:1", "security": {"protocol": "ssl", "ca": "ca.pem"}, "properties": {"client.id": "me"}}
    assert java_settings(given, tmp_path, "s") == {
        "kafka.bootstrap.servers": "b:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "CA",
        "kafka.client.id": "me",
    }
