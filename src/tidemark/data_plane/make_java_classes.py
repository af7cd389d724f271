"""Compiles Tidemark's Java classes into a jar, with the compiler that Spark brings along: no JDK is needed.

`python -m tidemark.data_plane.make_java_classes`, once for an environment; `make setup` does it.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway

from tidemark import java_classes
from tidemark.errors import EnvironmentFault


def main() -> int:
    target = java_classes.path()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        classes = _compiled(java_classes.SOURCES)
    except EnvironmentFault as problem:
        print(problem.message, file=sys.stderr)
        return 1
    for older in target.parent.glob(java_classes.JARS):
        older.unlink()
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        with zipfile.ZipFile(made, "w") as jar:
            for name, code in classes.items():
                jar.writestr(f"{name.replace('.', '/')}.class", code)
        made.replace(target)
    return 0


def _compiled(sources: Iterable[Path]) -> dict[str, bytes]:
    """The classes of Java sources that do not know each other, by name."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    classes: dict[str, bytes] = {}
    try:
        for source in sources:
            compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
            try:
                compiler.cook(source.read_text(encoding="utf-8"))
            except Py4JJavaError as problem:
                # Its words are Java's too, so they are asked for while Java is there.
                raise EnvironmentFault(f"{source.name} was not compiled: {problem.java_exception}") from None
            classes |= {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}
        return classes
    finally:
        gateway.shutdown()


if __name__ == "__main__":
    sys.exit(main())
