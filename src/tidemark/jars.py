"""The jars beside Spark's own: locked by checksum, fetched once per environment, found there by every later run.

The Ivy inside pyspark fetches them, so nothing but Java is needed. `python -m tidemark.jars` does it, and says
nothing when there is nothing to do.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from xml.sax.saxutils import quoteattr

from tidemark import prepared
from tidemark.errors import EnvironmentFault
from tidemark.java import require_java

CONNECTOR = "connector"
BROKER = "broker"
SETS = (CONNECTOR, BROKER)
COMMAND = f"{sys.executable} -m tidemark.jars"
_FETCH_SECONDS = 900
_LAST_WORDS = 3


@dataclass(frozen=True)
class Jar:
    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"

    def is_in(self, folder: Path) -> bool:
        path = folder / self.file
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256


def locked(set_: str) -> tuple[Jar, ...]:
    """The jars of a set, as `jars.lock` pins them."""
    lines = resources.files("tidemark").joinpath("jars.lock").read_text(encoding="utf-8").splitlines()
    entries = (line.split() for line in lines if not line.startswith("#"))
    return tuple(_jar(coordinates, sha256) for name, coordinates, sha256 in entries if name == set_)


def _jar(coordinates: str, sha256: str) -> Jar:
    group, name, version = coordinates.split(":")
    return Jar(group, name, version, sha256)


def folder(set_: str) -> Path:
    return prepared.folder() / "jars" / set_


def missing(set_: str) -> list[Jar]:
    """Jars that are not there, or not what the lock says."""
    return [jar for jar in locked(set_) if not jar.is_in(folder(set_))]


def require(set_: str) -> list[Path]:
    """The files of a set; raises EnvironmentFault, saying how to get them, when one is missing."""
    if lacking := missing(set_):
        raise EnvironmentFault(
            f"{_count(lacking)} of the {set_} set missing: {lacking[0].coordinates}{' …' if lacking[1:] else ''}",
            hint=f"fetch them once with `make setup` or `{COMMAND}` (needs the network)",
        )
    return [folder(set_) / jar.file for jar in locked(set_)]


def fetch(set_: str) -> int:
    """Fetches what is missing of a set; how many jars that were. Each appears whole and checked, or not at all."""
    lacking = missing(set_)
    if not lacking:
        return 0
    folder(set_).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder(set_).parent) as name:
        arriving = Path(name)
        said = _run_ivy(lacking, arriving)
        _check_arrived(lacking, arriving, said)
        for jar in lacking:
            os.replace(arriving / jar.file, folder(set_) / jar.file)
    return len(lacking)


def _run_ivy(jars: Iterable[Jar], into: Path) -> str:
    """What Ivy said; whether it did its work is seen from the files."""
    order = into / "ivy.xml"
    order.write_text(_order(jars), encoding="utf-8")
    command = [require_java(), "-cp", f"{_spark_jars()}/*", "org.apache.ivy.Main", "-m2compatible", "-ivy", str(order)]
    command += ["-confs", "default", "-retrieve", f"{into}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    return done.stdout + done.stderr


def _order(jars: Iterable[Jar]) -> str:
    """An Ivy module that needs exactly these jars; nothing is resolved that the lock does not name."""
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.name)} rev={quoteattr(jar.version)}"
        ' transitive="false" force="true" conf="default->master"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="tidemark" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _check_arrived(jars: Iterable[Jar], arrived: Path, said: str) -> None:
    for jar in jars:
        if not (arrived / jar.file).is_file():
            raise EnvironmentFault(f"{jar.coordinates} could not be fetched{_last_words(said)}", hint=_offline_hint())
        if not jar.is_in(arrived):
            raise EnvironmentFault(
                f"{jar.coordinates} came with another checksum than the lock file says",
                hint=f"delete ~/.ivy2*/cache/{jar.group}/{jar.name} and try again; if it stays so, trust it not",
            )


def _last_words(said: str) -> str:
    problems = [
        line.strip() for line in said.splitlines() if "not found" in line.lower() or "exception" in line.lower()
    ]
    return f": {'; '.join(problems[:_LAST_WORDS])}" if problems else ""


def _offline_hint() -> str:
    return (
        f"this machine must reach Maven Central once: run `{COMMAND}` when it can, or copy the folder "
        f"{folder(CONNECTOR).parent} from an environment that has it"
    )


def _spark_jars() -> Path:
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise EnvironmentFault("pyspark is not installed", hint="run `make setup`")
    return Path(package.origin).parent / "jars"


def _count(jars: list[Jar]) -> str:
    return "1 jar" if len(jars) == 1 else f"{len(jars)} jars"


def main() -> int:
    try:
        for set_ in SETS:
            if fetched := fetch(set_):
                print(f"fetched {fetched} jars into {folder(set_)}", file=sys.stderr)
    except EnvironmentFault as fault:
        print(f"{fault.message}\n  {fault.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
