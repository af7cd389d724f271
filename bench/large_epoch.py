"""One epoch with millions of result rows through a driver of 1 GB: five million windows that close at once.

Runs the real command with a generator, a window keyed by every event, an SQLite sink and a files sink. Prints the
rows each sink holds, the time taken and the largest resident memory of the driver's Python process. A driver that had
to be started again is a failure, and leaves its log in LOG. With `--width` each row has a text of that many characters:
300 of them make more of an epoch than the driver has memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tidemark.run_directory import JobDirectory

LOG = Path(".tidemark/large-epoch-driver.log")
JOB = """
tidemark: 1
name: large-epoch
epoch: {{max_events: 500000}}
sources:
  events:
    generator:
      count: {rows}
      rate: 1000000
      start: "2026-01-01T00:00:00Z"
      columns: {{id: n, amount: "cast(n % 100 as double)"{text}}}
operators:
  each:
    type: window
    input: events
    key: [id]
    window: {{tumbling: 1h}}
    aggregate: {{n: count(), total: sum(amount){largest_text}}}
sinks:
  table: {{input: each, sqlite: {{path: out.db, table: results, mode: append}}}}
  files: {{input: each, files: {{path: out, format: jsonl}}}}
"""


def job_text(rows: int, width: int) -> str:
    text = f", text: \"repeat('x', {width})\"" if width else ""
    return JOB.format(rows=rows, text=text, largest_text=", text: max(text)" if width else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--width", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.yaml").write_text(job_text(options.rows, options.width), encoding="utf-8")
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "tidemark", "run", "job.yaml", "--until-drained", "--json"],
            cwd=folder,
            env={**os.environ, "TIDEMARK_DRIVER_MEMORY": "1g", "TIDEMARK_HOME": str(folder / "home")},
            stdout=subprocess.PIPE,
            check=True,
        )
        seconds = time.monotonic() - started
        starts = _starts(JobDirectory(folder / "home", "large-epoch"))
    summary = json.loads(done.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"sinks: {summary['sinks']}, state {summary['state']}, {seconds:.0f} s, largest process {peak:,.0f} MiB")
    assert starts == 1, f"the driver was started {starts} times; see {LOG}"
    assert all(sink["rows"] == options.rows for sink in summary["sinks"].values())
    return 0


def _starts(directory: JobDirectory) -> int:
    last = directory.last_start()
    assert last is not None
    if last.attempt > 1:
        LOG.parent.mkdir(exist_ok=True)
        shutil.copy(directory.log, LOG)
    return last.attempt


if __name__ == "__main__":
    raise SystemExit(main())
