"""Kafka to tumbling window to Kafka: Tidemark, exactly once, against PySpark by hand with Spark's at-least-once sink.

One process, one broker, the same topic, in turns.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.measure import Rounds, timed
from bench.orders import SCHEMA, START, arguments, job_text, order, per_minute, run_job
from tidemark import jars
from tidemark.data_plane.session import create_session
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics

PARTITIONS = 2
EPOCH_EVENTS = 500_000
SETTINGS = f"epoch: {{max_events: {EPOCH_EVENTS}}}"
SOURCE = 'kafka: {{topic: events, servers: "{servers}", start: earliest}}\n    format: json'
SINK = 'kafka: {{topic: "{out}", servers: "{servers}", key: [store], format: json}}'


def fill(servers: str, events: int, keys: int) -> None:
    """Events that move on in time, round robin over the partitions."""
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for n in range(events):
        time = START + timedelta(milliseconds=n)
        value = order(f"e{n}", n, time, keys, chance).encode()
        producer.produce("events", value, partition=n % PARTITIONS)
        if n % 1000 == 0:
            producer.poll(0)
        if n % 100_000 == 0:
            producer.flush()
    producer.flush()


def by_hand(spark: SparkSession, servers: str, out: str, work: Path) -> None:
    """The query as one would write it with Structured Streaming alone."""
    events = (
        spark.readStream.name("events")
        .format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", EPOCH_EVENTS)
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("event"))
        .select("event.*")
    )
    results = per_minute(events)
    records = results.select(F.col("store").alias("key"), F.to_json(F.struct("*")).alias("value"))
    writer = records.writeStream.format("kafka").outputMode("append").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", out).option("checkpointLocation", str(work / "state"))
    writer.trigger(availableNow=True).start().awaitTermination()


def with_tidemark(spark: SparkSession, servers: str, out: str, work: Path, lineage: str) -> None:
    text = job_text(SOURCE.format(servers=servers), SINK.format(servers=servers, out=out), SETTINGS)
    run_job(spark, text, work, lineage)


def main() -> int:
    options = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name, KafkaBroker() as broker:
        folder = Path(name)
        Topics(broker.servers).create("events", PARTITIONS)
        fill(broker.servers, options.events, options.keys)
        spark = create_session("kafka", driver_memory="4g", parallelism=2, jars=jars.require(jars.CONNECTOR))
        rounds = Rounds(options.events)
        for round_ in range(options.rounds + 1):
            work = folder / f"round-{round_}"
            with timed(spark, options.events) as plain:
                by_hand(spark, broker.servers, f"plain-{round_}", work / "plain")
            with timed(spark, options.events) as ours:
                with_tidemark(spark, broker.servers, f"ours-{round_}", work / "ours", f"bench-{round_}")
            shutil.rmtree(work)
            rounds.add(round_, plain=plain, tidemark=ours)
        spark.stop()
    rounds.report()
    print(f"ratio tidemark, exactly once / plain PySpark, at least once: {rounds.ratio('tidemark', to='plain'):.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
