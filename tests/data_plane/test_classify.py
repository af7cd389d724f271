"""Foreign failures become errors of our tree: every row of the map, and every way a cause can hide."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException, StreamingQueryException

from tidemark.data_plane.report.classify import CONDITIONS, classify
from tidemark.errors import (
    DiskFull,
    Domain,
    EngineFault,
    Fenced,
    Retry,
    SinkUnavailable,
    SourceUnreadable,
    StateFault,
    TidemarkError,
)
from tidemark.protocol.messages import Failure

MEANING: dict[str, type[TidemarkError]] = {
    "FAILED_READ_FILE": SourceUnreadable,
    "PATH_NOT_FOUND": SourceUnreadable,
    "CANNOT_LOAD_STATE_STORE": StateFault,
    "STATE_STORE": StateFault,
}


class SparkFailure(PySparkException):
    """As PySpark raises what came from the JVM: a condition and a text that names it."""

    def __init__(self, text: str, condition: str | None) -> None:
        super().__init__(message=text)
        self._text = text
        self._condition = condition

    def getCondition(self) -> str | None:
        return self._condition

    def __str__(self) -> str:
        return self._text


def chained(outer: Exception, cause: Exception) -> Exception:
    outer.__cause__ = cause
    return outer


def test_the_map_has_no_row_that_is_not_tested() -> None:
    assert [prefix for prefix, _ in CONDITIONS] == list(MEANING)


@pytest.mark.parametrize(("prefix", "kind"), MEANING.items())
def test_a_condition_of_spark_is_known_by_its_name(prefix: str, kind: type[TidemarkError]) -> None:
    text = (
        f"[{prefix}.SOME_DETAIL] What happened to in/x.parquet. SQLSTATE: KD001\n\tat org.apache.spark.Foo(Foo.scala:1)"
    )
    error = classify(SparkFailure(text, f"{prefix}.SOME_DETAIL"))
    assert type(error) is kind
    assert error.message == "What happened to in/x.parquet."
    assert error.hint


@pytest.mark.parametrize(("prefix", "kind"), MEANING.items())
def test_a_condition_inside_a_failed_query_is_found_in_its_text(prefix: str, kind: type[TidemarkError]) -> None:
    text = f"[STREAM_FAILED] Query [id = 1] terminated: [{prefix}] Of what it died. SQLSTATE: XXKST\n=== Plan ===\nx"
    error = classify(SparkFailure(text, "STREAM_FAILED"))
    assert type(error) is kind
    assert error.message == "Of what it died."


@pytest.mark.parametrize("make", [row[1] for row in CONDITIONS])
def test_no_known_condition_is_tried_again_for_ever(make: Callable[[str], TidemarkError]) -> None:
    error = make("it broke")
    assert error.retry is Retry.NEVER
    assert error.hint


def test_an_unknown_condition_is_an_engine_fault_of_one_line() -> None:
    error = classify(StreamingQueryException(message="[STREAM_FAILED] it broke\n\tat org.apache.spark.Foo"))
    assert type(error) is EngineFault
    assert error.message == "[STREAM_FAILED] it broke"
    assert (error.domain, error.retry) == (Domain.INTERNAL, Retry.RESTART)


@pytest.mark.parametrize("own", [Fenced("older", step="out"), SinkUnavailable("locked", hint="wait", step="out")])
def test_our_own_errors_stay_what_they_are(own: TidemarkError) -> None:
    assert classify(own) is own
    assert classify(chained(RuntimeError("in a callback"), own)) is own


def test_our_own_error_is_found_behind_one_that_it_led_to() -> None:
    own, outer = Fenced("older"), SparkFailure("[PYTHON_FOREACH_BATCH] an exception was raised", None)
    outer.__context__ = own
    assert classify(outer) is own


@pytest.mark.parametrize(
    "problem",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SparkFailure("[STREAM_FAILED] java.io.IOException: No space left on device", "STREAM_FAILED"),
        SparkFailure("[FAILED_READ_FILE] x: No space left on device", "FAILED_READ_FILE"),
        chained(RuntimeError("the epoch failed"), OSError(errno.ENOSPC, "full")),
    ],
)
def test_a_full_disk_is_a_full_disk_whoever_found_it(problem: Exception) -> None:
    error = classify(problem)
    assert type(error) is DiskFull
    assert "nothing is lost" in (error.hint or "")


@pytest.mark.parametrize(
    "problem",
    [
        Py4JNetworkError("An error occurred while trying to connect to the Java server"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        chained(RuntimeError("x"), Py4JNetworkError("Answer from Java side is empty")),
    ],
)
def test_a_lost_jvm_is_started_again(problem: Exception) -> None:
    error = classify(problem)
    assert type(error) is EngineFault
    assert error.message == "the Java process behind Spark is gone"
    assert error.retry is Retry.RESTART


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("An error occurred while calling o1.x. Trace:\npy4j.Py4JException: y\n", "a call into Spark failed"),
        (
            "An error occurred while calling o1.x.\n: java.util.NoSuchElementException: none\n\tat a.B.c(B.java:1)\n",
            "a call into Spark failed: java.util.NoSuchElementException: none",
        ),
    ],
)
def test_a_java_trace_is_not_shown_but_its_reason_is(text: str, message: str) -> None:
    assert classify(Py4JError(text)).message == message


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (KeyError("orders"), "'orders'"),
        (AssertionError(), "AssertionError"),
        (ValueError("a" * 1000 + "\nsecond line"), "a" * 300),
    ],
)
def test_anything_else_is_an_engine_fault_in_few_words(problem: Exception, message: str) -> None:
    error = classify(problem)
    assert type(error) is EngineFault
    assert error.message == message
    assert error.hint


def test_a_failure_carries_every_field_of_the_error() -> None:
    failure = Failure.of(SinkUnavailable("locked", hint="wait", step="out"))
    assert failure.model_dump() == {
        "code": "sink_unavailable",
        "domain": "external",
        "retry": "backoff",
        "message": "locked",
        "hint": "wait",
        "step": "out",
    }
