"""Tidemark: event-time stream processing on Spark. `Job` builds and runs a job in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.job import Job

__all__ = ["Job"]


def __getattr__(name: str) -> Any:
    """Loads the builder when it is first asked for: the command line does not need it."""
    if name == "Job":
        from tidemark.job import Job

        return Job
    raise AttributeError(f"module 'tidemark' has no attribute {name!r}")
