"""`python -m faults.chaos --rounds 50 --seed 1`: the long form of the proof. Exit code 1 when anything is wrong.

Ctrl-C ends it after the round that is going on, with all checks of the end.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from itertools import cycle, islice
from pathlib import Path

from faults.chaos.session import run_session, schedule
from faults.chaos.strikes import FAULTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, default=Path("chaos-report.json"))
    parser.add_argument("--only", nargs="+", choices=sorted(FAULTS), help="these faults, in turn")
    parser.add_argument("--keep", type=Path, help="a new folder for the job's state and logs, which is then kept")
    given = parser.parse_args()
    enough = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: enough.set())
    # An orderly end, so that nothing that was started is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    faults = list(islice(cycle(given.only), given.rounds)) if given.only else schedule(given.seed, given.rounds)
    with tempfile.TemporaryDirectory(prefix="tidemark-chaos-") as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        report = run_session(faults, given.seed, folder.resolve(), lambda line: print(line, flush=True), enough)
    report.write(given.report)
    print("\n".join(report.lines()), flush=True)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
