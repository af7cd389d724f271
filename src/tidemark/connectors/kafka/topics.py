"""Topics as administration sees them: whether they exist, their partitions and settings, and making one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tidemark.connectors.kafka.faults import DENIED, error_of

ADMIN_SECONDS = 30.0
_LOOK_SECONDS = 1.0


def open_admin(settings: Mapping[str, Any]) -> AdminClient:
    """A client that has reached the brokers; raises at once when they refuse the login, which waiting does not cure."""
    told: list[KafkaError] = []
    configured: dict[str, Any] = {**settings, "error_cb": told.append}
    admin = AdminClient(configured)
    deadline = time.monotonic() + ADMIN_SECONDS
    while True:
        try:
            admin.list_topics(timeout=min(_LOOK_SECONDS, ADMIN_SECONDS))
            return admin
        except KafkaException:
            admin.poll(0)
            if denied := next((error for error in told if error.code() in DENIED), None):
                raise KafkaException(denied) from None
            if time.monotonic() > deadline:
                raise


def create_missing_topic(
    admin: AdminClient, topic: str, partitions: int | None = None, settings: Mapping[str, str] | None = None
) -> None:
    """Leaves an existing topic as it is; without a number of partitions the brokers' default holds."""
    if partitions_of(admin, topic) is not None:
        return
    new = NewTopic(topic, partitions or -1, -1, config=dict(settings or {}))
    (created,) = admin.create_topics([new], request_timeout=ADMIN_SECONDS).values()
    try:
        created.result()
    except KafkaException as refused:
        if error_of(refused).code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    _wait_until_known(admin, topic)


def _wait_until_known(admin: AdminClient, topic: str) -> None:
    """A broker answers that a topic is made before all of it has heard of the topic."""
    deadline = time.monotonic() + ADMIN_SECONDS
    while time.monotonic() < deadline:
        found = admin.list_topics(timeout=ADMIN_SECONDS).topics.get(topic)
        if found and found.partitions and all(each.leader >= 0 for each in found.partitions.values()):
            return


def partitions_of(admin: AdminClient, topic: str) -> int | None:
    """How many partitions a topic has; None when there is no such topic."""
    found = admin.list_topics(timeout=ADMIN_SECONDS).topics.get(topic)
    if found is None:
        return None
    if found.error is not None:
        raise KafkaException(found.error)
    return len(found.partitions)


def topic_settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """The settings in force; empty when this user may not see them."""
    (described,) = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=ADMIN_SECONDS
    ).values()
    try:
        return {name: entry.value for name, entry in described.result().items()}
    except KafkaException as refused:
        if error_of(refused).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return {}
        raise


def end_offsets(
    admin: AdminClient, where: Iterable[TopicPartition], isolation: IsolationLevel
) -> dict[tuple[str, int], int]:
    """The end of each partition: the very end, or the last stable offset for a reader of committed records."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    found = admin.list_offsets(dict.fromkeys(where, latest), isolation_level=isolation, request_timeout=ADMIN_SECONDS)
    return {(each.topic, each.partition): future.result().offset for each, future in found.items()}
