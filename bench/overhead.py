"""What Tidemark costs over plain PySpark: the same tumbling window over the same files, in one process, in turns.

Prints every round and the ratio of the medians, without late rows and with a share of them in every measured epoch.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from bench.measure import Rounds, timed
from bench.orders import SCHEMA, START, arguments, job_text, order, per_minute, run_job
from tidemark.data_plane.session import create_session
from tidemark.protocol.messages import Ended

FILES = 20
FILES_PER_EPOCH = 5
# Nothing can be late in a job's first two epochs, so two short ones come first; they are not measured.
LEADING_EPOCHS = 2
LEADING_EVENTS = 200
LEADING_TIME = timedelta(minutes=2)
SOURCE = "files: {{path: {path}, format: jsonl, max_files_per_epoch: {files}}}"
SINK = "files: {{path: {out}, format: jsonl}}"
LATE_SINK = "  late: {{input: per_minute.late, files: {{path: {out}-late, format: jsonl}}}}\n"


def make_events(folder: Path, events: int, keys: int, late: float) -> int:
    """Writes FILES files of events that move on in time; returns how many were made late on purpose."""
    chance = random.Random(7)
    folder.mkdir(parents=True)
    step = LEADING_TIME / (LEADING_EVENTS * FILES_PER_EPOCH)
    for file in range(LEADING_EPOCHS * FILES_PER_EPOCH):
        first = file % FILES_PER_EPOCH * LEADING_EVENTS
        times = [START + (first + number) * step for number in range(LEADING_EVENTS)]
        write_events(folder / f"lead-{file:03d}.jsonl", times, keys, chance)
    made_late = 0
    for file in range(FILES):
        first = file * (events // FILES)
        times = [START + LEADING_TIME + timedelta(milliseconds=first + n) for n in range(events // FILES)]
        late_ones = [n for n in range(len(times)) if chance.random() < late]
        for n in late_ones:
            times[n] = START + timedelta(milliseconds=n % 1000)
        made_late += len(late_ones)
        write_events(folder / f"part-{file:03d}.jsonl", times, keys, chance)
    return made_late


def write_events(path: Path, times: list[datetime], keys: int, chance: random.Random) -> None:
    """Files are read in order of modification time, and in the order of their names where that is the same."""
    lines = [order(f"{path.stem}-{n}", n, time, keys, chance) for n, time in enumerate(times)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def by_hand(spark: SparkSession, events: Path, work: Path) -> None:
    """The query as one would write it with Structured Streaming alone."""
    stream = spark.readStream.name("events").schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_EPOCH)
    results = per_minute(stream.json(str(events)))
    writer = results.writeStream.format("json").outputMode("append").option("checkpointLocation", str(work / "state"))
    writer.option("path", str(work / "out")).trigger(availableNow=True).start().awaitTermination()


def with_tidemark(spark: SparkSession, events: Path, work: Path, late: bool) -> Ended:
    text = job_text(SOURCE.format(path=events, files=FILES_PER_EPOCH), SINK.format(out=work / "out"))
    text += LATE_SINK.format(out=work / "out") if late else ""
    return run_job(spark, text, work)


def check(ended: Ended, events: int, late: int) -> None:
    """Every late row was counted and written, once."""
    counts = ended.total.operators["per_minute"]
    assert counts.late == late == ended.total.sinks["late"].rows, (counts, late)
    leading = LEADING_EPOCHS * FILES_PER_EPOCH * LEADING_EVENTS
    assert counts.rows_in == counts.passed + counts.late == events + leading


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--late", type=float, default=0.01, help="share of late events in every epoch of the last part")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = create_session("overhead", driver_memory="4g", parallelism=2)
        make_events(folder / "in", options.events, options.keys, 0)
        late = make_events(folder / "in-late", options.events, options.keys, options.late)
        rounds, smallest = Rounds(options.events), LEADING_EVENTS * FILES_PER_EPOCH
        for round_ in range(options.rounds + 1):
            work = folder / f"round-{round_}"
            with timed(spark, options.events, smallest) as plain:
                by_hand(spark, folder / "in", work / "plain")
            with timed(spark, options.events, smallest) as ours:
                with_tidemark(spark, folder / "in", work / "ours", late=False)
            with timed(spark, options.events, smallest) as with_late:
                ended = with_tidemark(spark, folder / "in-late", work / "late", late=True)
            check(ended, options.events, late)
            shutil.rmtree(work)
            rounds.add(round_, plain=plain, tidemark=ours, tidemark_late=with_late)
        rounds.report()
        print(f"ratio tidemark / plain PySpark: {rounds.ratio('tidemark', to='plain'):.2f}")
        cost = rounds.ratio("tidemark_late", to="tidemark")
        print(f"ratio with {late / options.events:.2%} late rows in every epoch / without: {cost:.2f}")
        spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
