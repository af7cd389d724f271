"""`doctor`: whether this machine has what a run needs, and what to install when it has not."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from tidemark import class_archive, jars, java_classes, prepared
from tidemark.cli.failures import FAILED, FINE
from tidemark.java import java_path
from tidemark.settings import Settings, load_settings

JAVA = 17
PYTHON = (3, 11)
PYSPARK = "4.3.0"
FREE_DISK = 2 * 1024**3
FREE_MEMORY = 1024**3
UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
INSTALL_JAVA = {
    "apt-get": "sudo apt-get install openjdk-17-jre-headless",
    "dnf": "sudo dnf install java-17-openjdk-headless",
    "brew": "brew install openjdk@17",
    "apk": "sudo apk add openjdk17-jre-headless",
    "pacman": "sudo pacman -S jre17-openjdk-headless",
}


@dataclass(frozen=True)
class Finding:
    """One line of the answer; `fix` is what to do when it is not ok."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def doctor(*, as_json: bool) -> int:
    settings = load_settings(Path.cwd())
    findings = [check(settings) for check in CHECKS]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print("\n".join(_line(finding) for finding in findings))
    return FINE if all(finding.ok for finding in findings) else FAILED


def _line(finding: Finding) -> str:
    line = f"{'ok' if finding.ok else 'missing':8}{finding.name:10}{finding.found}"
    return line if finding.ok else f"{line}\n{'':18}{finding.fix}"


def check_python(settings: Settings) -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    return Finding("python", sys.version_info >= PYTHON, found, "install Python 3.11 or newer")


def check_java(settings: Settings) -> Finding:
    path = java_path()
    if path is None:
        return Finding("java", False, "no java in JAVA_HOME or on PATH", _java_fix())
    version = java_version(path)
    found = f"{'unknown version' if version is None else version} at {path}"
    return Finding("java", version is not None and version >= JAVA, found, _java_fix())


def java_version(path: str) -> int | None:
    """The major version; None when the program does not say."""
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def _java_fix() -> str:
    command = next((command for tool, command in INSTALL_JAVA.items() if shutil.which(tool)), None)
    wanted = f"Java {JAVA} or newer"
    return f"install {wanted}: {command}" if command else f"install {wanted} and set JAVA_HOME to it"


def check_pyspark(settings: Settings) -> Finding:
    fix = f"run `make setup`, or pip install pyspark=={PYSPARK}"
    try:
        found = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Finding("pyspark", False, "not installed", fix)
    return Finding("pyspark", found == PYSPARK, f"{found} ({PYSPARK} needed)", fix)


def check_jars(settings: Settings) -> Finding:
    fix = "install pyspark again: its jars are not complete"
    package = importlib.util.find_spec("pyspark")
    folder = Path(package.origin).parent / "jars" if package and package.origin else None
    found = list(folder.glob("*.jar")) if folder else []
    return Finding("jars", any(jar.name.startswith("spark-core") for jar in found), f"{len(found)} of Spark", fix)


def check_kafka(settings: Settings) -> Finding:
    lacking = {set_: len(jars.missing(set_)) for set_ in jars.SETS}
    fix = f"fetch them with `make setup` or `{jars.COMMAND}`; without them no job can use Kafka"
    found = ", ".join(
        f"{len(jars.locked(set_)) - lacking[set_]} of {len(jars.locked(set_))} {set_} jars" for set_ in jars.SETS
    )
    return Finding("kafka", not any(lacking.values()), found, fix)


def check_start_up(settings: Settings) -> Finding:
    """Only speed depends on it, so that it is missing is said, and is not a fault."""
    if class_archive.can_be_used():
        return Finding("start-up", True, "quick, with an archive of Spark's classes")
    return Finding("start-up", True, f"slow: `{class_archive.COMMAND}` makes an archive that halves it")


def check_files(settings: Settings) -> Finding:
    """Of this, too, only speed depends."""
    if java_classes.can_be_used():
        return Finding("files", True, "written quickly, by classes of our own")
    if os.pathsep in str(java_classes.path()):
        return Finding("files", True, f"written slowly: {prepared.folder()} has a {os.pathsep!r} in its name")
    commands = f"`{java_classes.COMMAND}`, and then `{class_archive.COMMAND}`"
    return Finding("files", True, f"written slowly: {commands} makes that quicker")


def check_memory(settings: Settings) -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    driver = int(settings.driver_memory[:-1]) * UNITS[settings.driver_memory[-1]]
    found = f"{_gib(total)} in all, the driver takes {settings.driver_memory}"
    return Finding("memory", total >= driver + FREE_MEMORY, found, "set TIDEMARK_DRIVER_MEMORY to less, such as 1g")


def check_home(settings: Settings) -> Finding:
    fix = "set TIDEMARK_HOME to a folder that can be written"
    try:
        with tempfile.TemporaryFile(dir=_existing(settings.home)):
            return Finding("home", True, f"{settings.home} can be written")
    except OSError as error:
        return Finding("home", False, f"{settings.home}: {error.strerror}", fix)


def check_disk(settings: Settings) -> Finding:
    free = shutil.disk_usage(_existing(settings.home)).free
    fix = f"free some space, or set TIDEMARK_HOME to a disk with {_gib(FREE_DISK)}"
    return Finding("disk", free >= FREE_DISK, f"{_gib(free)} free for {settings.home}", fix)


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB"


CHECKS: tuple[Callable[[Settings], Finding], ...] = (
    check_python,
    check_java,
    check_pyspark,
    check_jars,
    check_kafka,
    check_start_up,
    check_files,
    check_memory,
    check_home,
    check_disk,
)
