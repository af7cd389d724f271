"""Compiles `LocalFiles.java` into a jar, with the compiler that Spark brings along: no JDK is needed.

`python -m tidemark.data_plane.make_local_files`, once for an environment; `make setup` does it.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway

from tidemark import local_files
from tidemark.errors import EnvironmentFault


def main() -> int:
    target = local_files.path()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        classes = _compiled(local_files.SOURCE.read_text(encoding="utf-8"))
    except EnvironmentFault as problem:
        print(problem.message, file=sys.stderr)
        return 1
    for older in target.parent.glob("local-files-*.jar"):
        older.unlink()
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        with zipfile.ZipFile(made, "w") as jar:
            for name, code in classes.items():
                jar.writestr(f"{name.replace('.', '/')}.class", code)
        made.replace(target)
    return 0


def _compiled(text: str) -> dict[str, bytes]:
    """The classes of a Java source, by name."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(text)
        return {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}
    except Py4JJavaError as problem:
        # Its words are Java's too, so they are asked for while Java is there.
        raise EnvironmentFault(f"{local_files.SOURCE.name} was not compiled: {problem.java_exception}") from None
    finally:
        gateway.shutdown()


if __name__ == "__main__":
    sys.exit(main())
