"""Kafka to tumbling window to Kafka: Tidemark, exactly once, against PySpark by hand with Spark's at-least-once sink.

One process, one broker, the same topic, in turns.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.measure import Rounds, timed
from tidemark import jars
from tidemark.compiler.compile import compile_job
from tidemark.data_plane.job_driver import JobDriver
from tidemark.data_plane.session import create_session
from tidemark.protocol.messages import RunSpec
from tidemark.testing.kafka_broker import KafkaBroker
from tidemark.testing.kafka_topics import Topics

START = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS = 2
EPOCH_EVENTS = 500_000
JOB = """
tidemark: 1
name: kafka-window
epoch: {{max_events: {epoch}}}
sources:
  events:
    kafka: {{topic: events, servers: "{servers}", start: earliest}}
    format: json
    schema: {{id: string, store: string, user: string, amount: double, ts: timestamp}}
    event_time: ts
    watermark: {{delay: 5s}}
operators:
  per_minute:
    type: window
    input: events
    key: [store]
    window: {{tumbling: 1m}}
    aggregate: {{orders: count(), revenue: sum(amount)}}
sinks:
  out: {{input: per_minute, kafka: {{topic: "{out}", servers: "{servers}", key: [store], format: json}}}}
"""


def fill(servers: str, events: int, keys: int) -> None:
    """Events that move on in time, round robin over the partitions."""
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for n in range(events):
        time = START + timedelta(milliseconds=n)
        value = {
            "id": f"e{n}",
            "store": f"s{chance.randrange(keys)}",
            "user": f"u{n % 977}",
            "amount": n % 100 + 0.5,
            "ts": time.isoformat().replace("+00:00", "Z"),
        }
        producer.produce("events", json.dumps(value).encode(), partition=n % PARTITIONS)
        if n % 1000 == 0:
            producer.poll(0)
        if n % 100_000 == 0:
            producer.flush()
    producer.flush()


def by_hand(spark: SparkSession, servers: str, out: str, work: Path) -> None:
    """The query as one would write it with Structured Streaming alone."""
    schema = "id string, store string, user string, amount double, ts timestamp"
    events = (
        spark.readStream.name("events")
        .format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", EPOCH_EVENTS)
        .load()
        .select(F.from_json(F.col("value").cast("string"), schema).alias("event"))
        .select("event.*")
    )
    results = (
        events.withWatermark("ts", "5 seconds")
        .groupBy(F.window("ts", "1 minute"), "store")
        .agg(F.count(F.lit(1)).alias("orders"), F.sum("amount").alias("revenue"))
        .select("store", F.col("window.start").alias("start"), F.col("window.end").alias("end"), "orders", "revenue")
    )
    records = results.select(F.col("store").alias("key"), F.to_json(F.struct("*")).alias("value"))
    writer = records.writeStream.format("kafka").outputMode("append").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", out).option("checkpointLocation", str(work / "state"))
    writer.trigger(availableNow=True).start().awaitTermination()


def with_tidemark(spark: SparkSession, servers: str, out: str, work: Path, lineage: str) -> None:
    (work / "state").mkdir(parents=True)
    spec = RunSpec(
        plan=compile_job(JOB.format(servers=servers, out=out, epoch=EPOCH_EVENTS)).plan,
        lineage=lineage,
        attempt=1,
        first_started_at=START,
        state=str(work / "state"),
        base=str(work),
        until_drained=True,
    )
    JobDriver(spec, spark, lambda message: None).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
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
