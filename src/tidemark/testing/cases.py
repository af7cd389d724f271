"""One of a job's `tests:`, played on a harness and judged. Which process does it is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tidemark.compiler.compile import Compiled
from tidemark.compiler.definition.case import CaseDefinition
from tidemark.errors import UsageError
from tidemark.protocol.messages import Accounting
from tidemark.schema import parse_type
from tidemark.testing.captured_sink import Row
from tidemark.testing.harness import Harness
from tidemark.testing.matching import compare
from tidemark.testing.script import Round, rounds_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class CaseOutcome:
    """What a case left behind once every window had closed."""

    rows: Mapping[str, list[Row]]
    accounting: Accounting


def _cannot_crash(rounds: int) -> NoReturn:
    raise UsageError(
        "a case with `crash: true` cannot run in this process, which would be killed",
        hint="run it with `tidemark test`, or use Harness.restart()",
    )


def run_case(
    compiled: Compiled,
    case: CaseDefinition,
    spark: SparkSession | None = None,
    *,
    folder: Path | None = None,
    done: int = 0,
    attempt: int = 1,
    crash: Callable[[int], NoReturn] = _cannot_crash,
) -> CaseOutcome:
    """Plays a case to its end. `crash` is called where the case wants one, with the number of rounds done by then.

    A case that crashed goes on from its `folder`, with the rounds already `done` and the next `attempt`.
    """
    with Harness(compiled, spark, folder=folder, attempt=attempt) as test:
        for number, round_ in enumerate(rounds_of(case)):
            if number < done:
                test.pass_over(round_.events)
                continue
            _play(test, round_)
            if round_.crash:
                crash(number + 1)
        test.drain()
        return CaseOutcome({sink: test.rows(sink) for sink in test.plan.sinks}, test.accounting())


def _play(test: Harness, round_: Round) -> None:
    test.epoch(round_.events)
    for source, to in round_.watermarks.items():
        test.advance_watermark(source, to)
    if round_.idle_ms:
        test.advance_time(round_.idle_ms / 1000)


def differences(compiled: Compiled, case: CaseDefinition, outcome: CaseOutcome) -> str:
    """What the sinks that the case names hold otherwise than expected; empty when all is as it should be."""
    found = []
    for sink, expected in case.expect.items():
        types = {column.name: parse_type(column.type) for column in compiled.plan.sinks[sink].columns}
        comparison = compare(expected, outcome.rows[sink], types)
        if not comparison.equal:
            found.append(comparison.describe(sink))
    return "\n".join(found)
