"""What tests measured, told at the end of the run by whichever process ran them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

MEASURED = "measured"


def measurements(terminal: pytest.TerminalReporter) -> Iterator[str]:
    for reports in terminal.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                yield from (f"{report.nodeid}: {text}" for name, text in report.user_properties if name == MEASURED)
