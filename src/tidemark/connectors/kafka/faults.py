"""Kafka's refusals in Tidemark's words. The one place where an error code of Kafka is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from tidemark.errors import (
    Fenced,
    SinkDenied,
    SinkFailure,
    SinkMismatch,
    SinkUnavailable,
    SourceFailure,
    SourceUnreadable,
    TidemarkError,
)

FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
DENIED = {
    KafkaError._AUTHENTICATION: "the login failed",
    KafkaError.SASL_AUTHENTICATION_FAILED: "the login failed",
    KafkaError.UNSUPPORTED_SASL_MECHANISM: "the brokers do not know this login mechanism",
    KafkaError._SSL: "no trusted TLS connection",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "no right to use the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "no right to use the consumer group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "no right to do this on the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "no right to use the transactional id",
}
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE})
UNFIT = frozenset(
    {
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._INVALID_ARG,
    }
)
# What a broker, or the way to it, says when it may work later. librdkafka marks most of these retriable, not all.
UNAVAILABLE = frozenset(
    {
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.INVALID_TXN_STATE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.TRANSACTION_ABORTABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._NOENT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._RESOLVE,
        KafkaError._STATE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
    }
)


@contextmanager
def named_sink_faults(servers: str, topic: str, step: str) -> Iterator[None]:
    """Lets only Tidemark's errors out of the block when Kafka refuses something."""
    try:
        yield
    except KafkaException as refused:
        raise sink_fault(error_of(refused), servers, topic, step) from refused


def error_of(refused: KafkaException) -> KafkaError:
    error = refused.args[0]
    assert isinstance(error, KafkaError)
    return error


def is_fenced(error: KafkaError) -> bool:
    """Whether this producer is of no more use, while another one may be.

    The code `_FATAL` alone says that it was given up earlier: who is in the way is then not told.
    """
    return error.code() in FENCED or error.code() == KafkaError._FATAL or error.fatal()


def may_work_later(error: KafkaError) -> bool:
    return error.code() in UNAVAILABLE or error.retriable()


def sink_fault(error: KafkaError, servers: str, topic: str, step: str) -> TidemarkError:
    code, reason = error.code(), error.str()
    if code in FENCED:
        return Fenced(
            "another driver of this job has taken over its transactions",
            hint="Nothing is to be done: the newer driver writes the results.",
            step=step,
        )
    if code in DENIED:
        return SinkDenied(f"Kafka at {servers}, topic {topic}: {DENIED[code]} ({reason})", hint=_DENIED_HINT, step=step)
    if code in MISSING:
        hint = "Create the topic, or let the brokers create it."
        return SinkMismatch(f"Kafka at {servers} has no topic {topic}", hint=hint, step=step)
    if code in TOO_LARGE:
        message = f"a row is larger than topic {topic} takes ({reason})"
        return SinkMismatch(message, hint="Raise `max.message.bytes` of the topic, or write less.", step=step)
    if code in UNFIT:
        hint = "Change the options of the sink, or the topic."
        return SinkMismatch(f"Kafka at {servers} refuses topic {topic}: {reason}", hint=hint, step=step)
    if may_work_later(error):
        hint = "It is tried again; check that the brokers are up."
        return SinkUnavailable(f"Kafka at {servers} does not take the rows: {reason}", hint=hint, step=step)
    return SinkFailure(f"Kafka at {servers}, topic {topic}, failed: {reason}", hint="See the brokers' log.", step=step)


def source_fault(error: KafkaError, servers: str, topics: str, step: str) -> SourceFailure:
    code, reason = error.code(), error.str()
    if code in DENIED:
        message = f"source {step}: Kafka at {servers}: {DENIED[code]} ({reason})"
        return SourceUnreadable(message, hint=_DENIED_HINT, step=step)
    if code in MISSING:
        message = f"source {step}: Kafka at {servers} has no topic {topics}"
        return SourceUnreadable(message, hint="Create the topic or correct `topic`.", step=step)
    hint = "Check `servers` and that the brokers are up."
    return SourceFailure(f"source {step}: Kafka at {servers} does not answer: {reason}", hint=hint, step=step)


_DENIED_HINT = "Check `security` and what the brokers allow this user (ACLs)."
