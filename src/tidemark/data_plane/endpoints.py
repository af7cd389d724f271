"""Makes the sources and sinks of a job, with the values that stand behind `$NAME` in their options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from tidemark.connectors.connector import Sink, SinkContext, Source, SourceContext
from tidemark.data_plane.secrets import resolve
from tidemark.protocol.message import Message
from tidemark.protocol.messages import ConsoleLine, RunSpec
from tidemark.stored_secrets import StoredSecrets, variables


class Endpoints:
    """Each call makes a new one; nothing is opened yet."""

    def __init__(
        self,
        spec: RunSpec,
        first_started_at: datetime,
        send: Callable[[Message], None],
        source_types: Mapping[str, Callable[[SourceContext], Source]],
        sink_types: Mapping[str, Callable[[SinkContext], Sink]],
    ) -> None:
        self._spec = spec
        self._first_started_ms = int(first_started_at.timestamp() * 1000)
        self._send = send
        self._source_types = source_types
        self._sink_types = sink_types
        self._variables = variables(os.environ, StoredSecrets(Path(spec.secrets)).values() if spec.secrets else {})

    def source(self, node: str, named: bool) -> Source:
        plan = self._spec.plan.sources[node]
        context = SourceContext(
            plan=plan,
            options=resolve(plan.options, self._variables, node),
            base=Path(self._spec.base),
            epoch=self._spec.plan.epoch,
            job=self._spec.plan.job,
            first_started_ms=self._first_started_ms,
            named=named,
        )
        return self._source_types[plan.connector](context)

    def sink(self, sink: str, reached: Callable[[str], None]) -> Sink:
        """`reached` is told of the places at which a test may strike."""
        plan = self._spec.plan.sinks[sink]
        context = SinkContext(
            job=self._spec.plan.job,
            lineage=self._spec.lineage,
            sink=sink,
            attempt=self._spec.attempt,
            columns=plan.columns,
            options=resolve(plan.options, self._variables, sink),
            base=Path(self._spec.base),
            failpoint=reached,
            show=lambda text: self._send(ConsoleLine(sink=sink, text=text)),
            keeps_refused=plan.keeps_refused,
        )
        return self._sink_types[plan.connector](context)
