"""Makes the archive of the broker's classes: runs one for a moment, and lets Java write down the classes that it used.

`python -m tidemark.testing.make_broker_archive`, once for an environment; `make setup` does it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tidemark.testing.kafka_broker import KafkaBroker, class_archive
from tidemark.testing.kafka_topics import Record, Topics


def main() -> int:
    target = class_archive()
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        made = Path(name) / target.name
        with KafkaBroker(Path(name) / "data", archive_classes_to=made) as broker:
            topics = Topics(broker.servers)
            topics.create("archived")
            topics.produce("archived", [Record(b"once")])
            topics.read("archived")
        if not made.is_file():
            print("Java wrote no archive of the broker's classes: brokers start without one", file=sys.stderr)
            return 1
        made.replace(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
