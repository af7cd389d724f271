"""The console sink: what people see, and that it remembers nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from connectors.arrow_rows import ArrowRows, columns_of, context_for

from tidemark.connectors.console.sink import ConsoleSink


@pytest.fixture
def shown() -> list[str]:
    return []


def test_rows_are_json_lines(tmp_path: Path, shown: list[str]) -> None:
    sink = ConsoleSink(context_for(tmp_path, {}, columns_of(k="string", at="timestamp"), show=shown.append))
    assert not sink.exactly_once
    assert sink.open() is None
    at = pa.array([0, None], pa.timestamp("us", tz="UTC"))
    assert sink.write(0, ArrowRows({"k": ['é"\n', None], "at": at})) == 2
    assert shown == ['{"k":"é\\"\\n","at":"1970-01-01T00:00:00Z"}', '{"k":null,"at":null}']
    assert sink.held(0) is None
    sink.close()


@pytest.mark.parametrize(("rows", "more"), [(0, []), (20, []), (57, ["… 37 more rows in epoch 4"])])
def test_a_large_epoch_is_cut_but_counted(rows: int, more: list[str], tmp_path: Path, shown: list[str]) -> None:
    reached: list[str] = []
    context = context_for(tmp_path, {}, columns_of(n="long"), show=shown.append, failpoint=reached.append)
    written = ConsoleSink(context).write(4, ArrowRows({"n": pa.array(range(rows), pa.int64())}, batch_rows=8))
    assert written == rows
    assert shown == [f'{{"n":{n}}}' for n in range(min(rows, 20))] + more
    assert reached == ["mid_sink", "before_sink_commit", "after_sink_commit"]
