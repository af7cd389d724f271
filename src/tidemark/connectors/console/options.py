"""Options of the console sink: none so far."""

from __future__ import annotations

from tidemark.compiler.definition.options import SinkOptions


class ConsoleSinkOptions(SinkOptions):
    """Rows are shown to people, line by line."""
