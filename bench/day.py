"""A day in the life of a server with real drivers: scripted changes, kills, requests, and a cluster that loses an
executor.

Prints every check with its figure and the load of the machine; the exit code is 1 when one of them does not hold.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.day_cluster import LostExecutor
from bench.day_kills import Kills
from bench.day_report import Report
from bench.day_requests import Requests
from bench.day_script import Day

Part = Callable[[Path, Report], None]


def scripted(folder: Path, report: Report) -> None:
    Day(folder, report).run()


def kills(folder: Path, report: Report) -> None:
    Kills(folder, report).run()


def cluster(folder: Path, report: Report) -> None:
    LostExecutor(folder, report).run()


def requests(folder: Path, report: Report) -> None:
    Requests(folder, report).run()


PARTS: dict[str, Part] = {"script": scripted, "kills": kills, "requests": requests, "cluster": cluster}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--keep", action="store_true", help="leave the folder of a part that went wrong")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    report = Report()
    for name in options.parts:
        _run(name, report, options.keep)
    return report.conclude()


def _run(name: str, report: Report, keep: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix=f"tidemark-day-{name}-"))
    before = len(report.failed)
    report.title(f"part {name}, in {folder}")
    try:
        PARTS[name](folder, report)
    except (RuntimeError, TimeoutError, LookupError, OSError) as problem:
        report.check(f"part {name} came to its end", False, str(problem))
    if not keep or len(report.failed) == before:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
