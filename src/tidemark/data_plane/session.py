"""The Spark session of a driver: one place for every setting that correctness or speed depends on."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from tidemark import class_archive, java_classes
from tidemark.data_plane.spark_internals import java_is_running, remember_functions
from tidemark.data_plane.worker_python import make_worker_python
from tidemark.errors import EnvironmentFault

_LOOPBACK = "127.0.0.1"
_STANDALONE = re.compile(r"spark://(?P<host>[^,]+?):(?P<port>[0-9]+)(,|$)")
_JAVA_OPTIONS = "-Xss8m"
# Else Java's own remarks go to standard output, which may be a job's results.
_JAVA_REMARKS = ("-Xlog:disable", "-Xlog:all=warning:stderr")
_STATE = "spark.sql.streaming.stateStore"
# Whether Spark keeps offsets under the names of sources, rather than by their place in the query.
SOURCE_NAMES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
SETTINGS: tuple[tuple[str, str], ...] = (
    ("spark.ui.enabled", "false"),
    ("spark.ui.showConsoleProgress", "false"),
    ("spark.driver.maxResultSize", "0"),
    ("spark.executor.extraJavaOptions", _JAVA_OPTIONS),
    ("spark.sql.session.timeZone", "UTC"),
    # Division by zero or a failed cast is null: one poisoned row must not stop a job.
    ("spark.sql.ansi.enabled", "false"),
    # Of equal keys in a map, such as two headers of one name, the last counts: the default stops the job.
    ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
    # Beside Spark's own pattern: logins of Kafka clients.
    ("spark.redaction.regex", "(?i)secret|password|token|access[.]?key|jaas|keystore"),
    ("spark.sql.runSQLOnFiles", "false"),
    # Else Spark replaces ${env:NAME} in any SQL text, string literals included.
    ("spark.sql.variable.substitute", "false"),
    # A record with one unreadable field is an error as a whole, never half a record.
    ("spark.sql.json.enablePartialResults", "false"),
    # Plans are walked by node (see spark_internals), so they must not change while they run.
    ("spark.sql.adaptive.enabled", "false"),
    (f"{_STATE}.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"),
    (f"{_STATE}.rocksdb.changelogCheckpointing.enabled", "true"),
    (f"{_STATE}.checkpointFormatVersion", "2"),
    # The default forks some 44 processes a batch on a local disk. This one checks, then renames: one writer only,
    # which the lock on the state folder guarantees.
    (
        "spark.sql.streaming.checkpointFileManagerClass",
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    ),
    (SOURCE_NAMES, "true"),
    # By default 100 generated classes are kept. The queries and side ports of one job have more, some 250 for two
    # queries with four side ports: each epoch would compile some of them anew.
    ("spark.sql.codegen.cache.maxEntries", "500"),
    # Else each column that is built asks Java a dozen times where in Python it was built, for error messages.
    ("spark.python.sql.dataFrameDebugging.enabled", "false"),
    # The compiler refuses what cannot work; Spark's own check also refuses dedup in front of a running aggregate.
    ("spark.sql.streaming.unsupportedOperationCheck", "false"),
    # How often an idle query says so, which is what moves idle time on.
    ("spark.sql.streaming.noDataProgressEventInterval", "250"),
    # Starting a Python worker can take longer than the default 15 s on a machine that has much to do.
    ("spark.python.authenticate.socketTimeout", "120s"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "10000"),
    # By default Parquet gets a form of its own for timestamps, of 96 bits, that few others read.
    ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"),
)


def settings_of(master: str, parallelism: int) -> tuple[tuple[str, str], ...]:
    """Where tasks run decides who must reach the driver, and how many of a cluster's cores a job may take.

    On a standalone cluster that is a core for each key group: without a limit the first job would take them all.
    """
    if master.startswith("local"):
        return _at(_LOOPBACK)
    if (cluster := _STANDALONE.match(master)) is None:
        return ()
    host, port = cluster["host"].strip("[]"), int(cluster["port"])
    return (*_at(_address_towards(host, port)), ("spark.cores.max", str(parallelism)))


def _at(address: str) -> tuple[tuple[str, str], ...]:
    return (("spark.driver.bindAddress", address), ("spark.driver.host", address))


def _address_towards(host: str, port: int) -> str:
    """The address of this machine from which that host is reached; nothing is sent to find out."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            found: str = probe.getsockname()[0]
            return found
    except OSError as error:
        raise EnvironmentFault(
            f"the Spark master {host} cannot be reached: {error.strerror or error}", hint="correct TIDEMARK_MASTER"
        ) from None


def driver_java_options(temporary: Path, archive_classes_to: Path | None = None) -> str:
    """Java does not look at TMPDIR, and puts native libraries and Spark's artifacts into its own temporary folder."""
    return " ".join((_JAVA_OPTIONS, _java_option(f"-Djava.io.tmpdir={temporary}"), *_class_options(archive_classes_to)))


def _class_options(archive_to: Path | None) -> list[str]:
    if archive_to:
        return [_java_option(f"-XX:ArchiveClassesAtExit={archive_to}"), "-XX:TieredStopAtLevel=1", "-Xlog:disable"]
    return [*map(_java_option, class_archive.java_options()), *_JAVA_REMARKS]


def _java_option(text: str) -> str:
    """Quoted, for paths with spaces."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def create_session(
    app_name: str,
    *,
    master: str = "local[*,4]",
    driver_memory: str = "2g",
    parallelism: int,
    jars: Sequence[Path] = (),
    temporary: Path | None = None,
    archive_classes_to: Path | None = None,
) -> SparkSession:
    """Starts (or joins) the Spark session of this process with Tidemark's settings; `jars` are beside Spark's own.

    It keeps temporary files in `temporary`, else where this process does: one that is killed leaves them there.
    With `archive_classes_to`, Java writes the classes it has used into that file when it ends.
    """
    if "PYSPARK_PYTHON" not in os.environ:
        own_workers = temporary if master.startswith("local") else None
        os.environ["PYSPARK_PYTHON"] = make_worker_python(own_workers) if own_workers else sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = SparkSession.builder.appName(app_name).master(master)
    builder = builder.config("spark.driver.memory", driver_memory)
    java_options = driver_java_options(temporary or Path(tempfile.gettempdir()), archive_classes_to)
    builder = builder.config("spark.driver.extraJavaOptions", java_options)
    builder = builder.config("spark.sql.shuffle.partitions", str(parallelism))
    if not java_is_running():
        # A Java process that is there already has its list of places, and would not find the class.
        own_files = java_classes.file_system() if master.startswith("local") else ()
        for name, value in (*java_classes.class_path(), *own_files):
            builder = builder.config(name, value)
    sent = [*jars, *([] if master.startswith("local") else java_classes.for_executors())]
    if sent:
        builder = builder.config("spark.jars", ",".join(map(str, sent)))
    for name, value in (*SETTINGS, *settings_of(master, parallelism)):
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    remember_functions(session)
    return session
