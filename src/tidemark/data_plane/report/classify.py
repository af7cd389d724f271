"""Foreign failures, by what they say of themselves, as errors of our tree. The one place where this is decided."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from tidemark.errors import DiskFull, EngineFault, SourceUnreadable, StateFault, TidemarkError

# Spark's error conditions, by prefix, and what they mean for a job.
CONDITIONS: tuple[tuple[str, Callable[[str], TidemarkError]], ...] = (
    ("FAILED_READ_FILE", lambda text: SourceUnreadable(text, hint="repair or remove the file, then start again")),
    ("PATH_NOT_FOUND", lambda text: SourceUnreadable(text, hint="create the path or correct it")),
    ("CANNOT_LOAD_STATE_STORE", lambda text: StateFault(text, hint="the state is damaged; start again with --fresh")),
    ("STATE_STORE", lambda text: StateFault(text, hint="the state does not fit this definition; start with --fresh")),
)
# Failures without a condition, by words in their text, and the beginning of the line that tells them best.
WORDS: tuple[tuple[str, str, Callable[[str], TidemarkError]], ...] = (
    (
        "Some data may have been lost because they are not available in Kafka any more",
        "Reason: ",
        lambda text: SourceUnreadable(
            f"records are gone from Kafka before they were read: {text}",
            hint="their retention has passed or the topic was made anew; begin with what is left by --fresh",
        ),
    ),
    (
        "java.net.URISyntaxException: Relative path in absolute URI",
        "Caused by: java.net.URISyntaxException: Relative path in absolute URI: ",
        lambda text: SourceUnreadable(
            f"Spark cannot read a file with a colon in its name: {text.removeprefix('.').removesuffix('.crc')}",
            hint="give it another name, then start again",
        ),
    ),
)
_NO_SPACE = "No space left on device"


def classify(problem: BaseException) -> TidemarkError:
    """The error of our tree that a failure stands for; an EngineFault when nothing better is known."""
    for cause in _causes(problem):
        if isinstance(cause, TidemarkError):
            return cause
        if (isinstance(cause, OSError) and cause.errno == errno.ENOSPC) or _NO_SPACE in str(cause):
            return DiskFull("no space is left on the disk", hint="free some space, then start again; nothing is lost")
        if isinstance(cause, PySparkException | Py4JError) and (
            known := _known_words(str(cause)) or _known_condition(str(cause))
        ):
            return known
        if isinstance(cause, Py4JNetworkError | ConnectionError):
            return java_is_gone()
    return EngineFault(_first_line(problem), hint="see the driver's log for details")


def java_is_gone() -> EngineFault:
    return EngineFault("the Java process behind Spark is gone", hint="it is started again from the last epoch")


def _known_condition(text: str) -> TidemarkError | None:
    """Spark writes the condition into the text of every wrapper, also where the exception has no field for it."""
    return next((make(_sentence(text, prefix)) for prefix, make in CONDITIONS if f"[{prefix}" in text), None)


def _known_words(text: str) -> TidemarkError | None:
    return next((make(_line(text, begin)) for words, begin, make in WORDS if words in text), None)


def _line(text: str, begin: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip().startswith(begin)), "").removeprefix(begin)


def _sentence(text: str, prefix: str) -> str:
    """The line that carries the condition, without Spark's decorations."""
    line = next(line for line in text.splitlines() if f"[{prefix}" in line)
    return line[line.find(f"[{prefix}") :].partition("] ")[2].partition(" SQLSTATE")[0] or line


def _first_line(problem: BaseException) -> str:
    if isinstance(problem, Py4JError):
        reason = _line(str(problem), ": ")
        return f"a call into Spark failed: {reason[:300]}" if reason else "a call into Spark failed"
    lines = str(problem).strip().splitlines()
    return lines[0][:300] if lines else type(problem).__name__


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__
