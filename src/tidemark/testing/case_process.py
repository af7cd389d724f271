"""The process in which the `tests:` of one job run, on one Spark session. `{crash: true}` kills it.

    python -m tidemark.testing.case_process SPEC

It reports on standard output. Started again with the position it had come to, it goes on from the files it left.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tidemark.compiler.compile import Compiled, compile_job
from tidemark.compiler.definition.case import CaseDefinition
from tidemark.data_plane.session import create_session
from tidemark.errors import TidemarkError
from tidemark.processes import end_with_standard_input
from tidemark.testing.case_messages import MARK, CaseResult, Crashing, Position, ProcessSpec
from tidemark.testing.cases import differences, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARENT_GONE = 3


def main() -> int:
    spec = ProcessSpec.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    end_with_standard_input(_PARENT_GONE)
    compiled = compile_job(spec.job)
    temporary = Path(spec.folder) / "temporary"
    temporary.mkdir(exist_ok=True)
    spark = create_session("tidemark-tests", driver_memory="1g", parallelism=2, temporary=temporary)
    start = spec.start
    for number in range(start.case, len(compiled.definition.tests)):
        at = start if number == start.case else Position(case=number)
        _report(_Case(compiled, spark, Path(spec.folder) / str(number), at).run())
    spark.stop()
    return 0


class _Case:
    def __init__(self, compiled: Compiled, spark: SparkSession, folder: Path, at: Position) -> None:
        self._compiled = compiled
        self._case: CaseDefinition = compiled.definition.tests[at.case]
        self._spark = spark
        self._folder = folder
        self._at = at
        self._began = time.monotonic()

    def run(self) -> CaseResult:
        diff = self._differences()
        shutil.rmtree(self._folder, ignore_errors=True)
        return CaseResult(name=self._case.name, passed=not diff, diff=diff, seconds=self._seconds())

    def _differences(self) -> str:
        try:
            outcome = run_case(
                self._compiled,
                self._case,
                self._spark,
                folder=self._folder,
                done=self._at.rounds,
                attempt=self._at.attempt,
                crash=self._crash,
            )
        except TidemarkError as error:
            hint = f"\n  hint: {error.hint}" if error.hint else ""
            return f"the job failed with error[{error.code}]: {error.message}{hint}"
        return differences(self._compiled, self._case, outcome)

    def _crash(self, rounds: int) -> NoReturn:
        after = Position(
            case=self._at.case, rounds=rounds, attempt=self._at.attempt + 1, seconds=round(self._seconds(), 3)
        )
        _report(Crashing(at=after))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process does not go on")

    def _seconds(self) -> float:
        return self._at.seconds + time.monotonic() - self._began


def _report(message: CaseResult | Crashing) -> None:
    print(f"{MARK}{message.model_dump_json()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
