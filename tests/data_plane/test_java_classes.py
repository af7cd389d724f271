"""Java classes of our own. Hadoop's local file system: the same files and modes, and no process for each."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidemark import java_classes, prepared
from tidemark.data_plane.spark_internals import has_class

# The place in /proc/PID/stat, behind the name.
_FAULTS_OF_CHILDREN = 8


@pytest.fixture
def hadoop(spark: SparkSession) -> Any:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return jvm.org.apache.hadoop.fs


@pytest.fixture
def files(spark: SparkSession, hadoop: Any, tmp_path: Path) -> Any:
    """What Spark uses for the paths of jobs."""
    context = spark.sparkContext._jsc
    assert context is not None
    return hadoop.Path(f"file://{tmp_path}").getFileSystem(context.hadoopConfiguration())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def faults_of_children(spark: SparkSession) -> int:
    """Page faults of the processes that Java has started and waited for: each one has some."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    return int(Path(f"/proc/{gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()[_FAULTS_OF_CHILDREN])


def test_files_and_folders_are_made_without_a_process(
    spark: SparkSession, files: Any, hadoop: Any, tmp_path: Path
) -> None:
    """More than once: a worker of an earlier test may end in the same moment."""

    def started(folder: Path) -> int:
        before = faults_of_children(spark)
        files.mkdirs(hadoop.Path(str(folder)))
        files.create(hadoop.Path(str(folder / "file")), True).close()
        return faults_of_children(spark) - before

    assert 0 in [started(tmp_path / "a" / str(number)) for number in range(3)]
    assert sorted(path.name for path in (tmp_path / "a" / "0").iterdir()) == [".file.crc", "file"]


def test_a_process_would_be_noticed(spark: SparkSession, files: Any, hadoop: Any, tmp_path: Path) -> None:
    """Sticky folders are left to Hadoop, which starts one."""
    before = faults_of_children(spark)
    (tmp_path / "folder").mkdir()
    files.setPermission(hadoop.Path(str(tmp_path / "folder")), hadoop.permission.FsPermission("1755"))
    assert faults_of_children(spark) > before
    assert mode(tmp_path / "folder") == 0o1755


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o644, 0o750, 0o777, 0o400, 0o004])
def test_permissions_are_those_asked_for(files: Any, hadoop: Any, tmp_path: Path, wanted: int) -> None:
    path = tmp_path / "with a space and ü"
    path.touch()
    files.setPermission(hadoop.Path(str(path)), hadoop.permission.FsPermission(f"{wanted:03o}"))
    assert mode(path) == wanted


def test_a_folder_goes_on_handing_its_group_on(files: Any, hadoop: Any, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2775)
    files.setPermission(hadoop.Path(str(folder)), hadoop.permission.FsPermission("755"))
    assert mode(folder) == 0o2755


def test_a_file_that_is_not_there_is_an_error(files: Any, hadoop: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="NoSuchFile"):
        files.setPermission(hadoop.Path(str(tmp_path / "absent")), hadoop.permission.FsPermission("644"))


def test_without_the_jar_none_of_its_classes_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert (java_classes.class_path(), java_classes.file_system(), java_classes.for_executors()) == ((), (), [])
    prepared.folder().mkdir(parents=True)
    (prepared.folder() / "tidemark-classes-0ld.jar").touch()
    assert not java_classes.can_be_used(), "made of an older source"
    java_classes.path().touch()
    assert dict(java_classes.class_path()) == {"spark.driver.extraClassPath": str(java_classes.path())}
    assert dict(java_classes.file_system()) == {"spark.hadoop.fs.file.impl": "tidemark.LocalFiles"}
    assert java_classes.for_executors() == [java_classes.path()]


def test_classes_that_are_there_are_told_from_others(spark: SparkSession) -> None:
    known = {name: has_class(spark.sparkContext, name) for name in (java_classes.ROW_FILES, "tidemark.NoSuchClass")}
    assert known == {java_classes.ROW_FILES: True, "tidemark.NoSuchClass": False}


def test_a_place_with_a_colon_cannot_stand_in_javas_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "a:b"))
    prepared.folder().mkdir(parents=True)
    java_classes.path().touch()
    assert not java_classes.can_be_used()
