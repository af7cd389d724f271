"""Reads a job file, or says in one sentence why it cannot be read."""

from __future__ import annotations

from pathlib import Path

from tidemark.errors import UsageError


def read_job_file(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", hint="name a job file, for example job.yaml") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder", hint=f"name a file in it, for example {path / 'job.yaml'}") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text (byte {error.start})", hint="a job file is YAML or JSON, saved as UTF-8"
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="check its path and permissions") from None
