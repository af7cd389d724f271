"""Fills a topic with the lines of a file, or shows what is in one; the broker is the one that $KAFKA names.

`python examples/topics.py feed TOPIC FILE KEY` makes a record of each line, keyed by that field where the line has it.
`python examples/topics.py show TOPIC` prints every committed record, one line each.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 2
SECONDS = 30.0


def feed(servers: str, topic: str, lines: list[str], field: str) -> None:
    """Returns when the broker has all of them. A missing topic is made; equal keys share a partition."""
    create(servers, topic)
    refused: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "partitioner": "murmur2"})
    for line in lines:
        producer.produce(topic, line, key_of(line, field), on_delivery=lambda error, _: error and refused.append(error))
    if producer.flush(SECONDS) or refused:
        sys.exit(f"{topic} did not take all records: {refused[:1] or 'no answer'}")
    print(f"{len(lines)} records in {topic}")


def create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (made,) = admin.create_topics([NewTopic(topic, PARTITIONS)]).values()
    try:
        made.result(SECONDS)
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def key_of(line: str, field: str) -> str | None:
    try:
        value: str | None = json.loads(line).get(field)
    except json.JSONDecodeError:
        return None
    return value


def show(servers: str, topic: str) -> None:
    settings = {"bootstrap.servers": servers, "group.id": "show", "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": True, "isolation.level": "read_committed"})
    partitions = consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    for message in until_the_end(consumer, len(partitions)):
        print((message.value() or b"").decode(errors="replace"))
    consumer.close()


def until_the_end(consumer: Consumer, partitions: int) -> Iterator[Message]:
    while partitions:
        message = consumer.poll(SECONDS)
        if message is None:
            sys.exit("the broker does not answer")
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            partitions -= 1
        else:
            raise KafkaException(error)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["feed", topic, file, field]:
            feed(os.environ["KAFKA"], topic, Path(file).read_text(encoding="utf-8").splitlines(), field)
        case ["show", topic]:
            show(os.environ["KAFKA"], topic)
        case _:
            sys.exit(__doc__)
