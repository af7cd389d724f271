"""The Python builder: writes the same definition as YAML does, one call for each source, operator and sink.

    job = Job("orders-per-minute")
    orders = job.source("orders", files={"path": "in", "format": "jsonl"}, schema={...}, event_time="ts")
    orders.filter("valid", "amount > 0").sink("out", console={})

Nothing is checked before `validate` or `run`, which report everything that is wrong at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tidemark.compiler.compile import compile_job
from tidemark.compiler.definition import emit
from tidemark.compiler.definition.job import JobDefinition
from tidemark.compiler.definition.parse import parse
from tidemark.compiler.diagnostics.diagnostic import Diagnostic
from tidemark.errors import DefinitionError, UsageError

Fields = Mapping[str, Any]
Key = Sequence[str] | Mapping[str, str]


class Job:
    """A job definition in the making. Fields that are None are left out, so that defaults stay defaults."""

    def __init__(
        self,
        name: str,
        *,
        mode: Literal["microbatch", "backfill"] | None = None,
        parallelism: int | None = None,
        epoch: Fields | None = None,
        sink_retry: str | None = None,
    ) -> None:
        whole = {"mode": mode, "parallelism": parallelism, "epoch": epoch, "sink_retry": sink_retry}
        self._data: dict[str, Any] = {"tidemark": 1, "name": name, **_given(whole)}
        for section in ("sources", "operators", "sinks"):
            self._data[section] = {}

    def source(
        self,
        id: str,
        *,
        schema: Mapping[str, str] | None = None,
        format: str | None = None,
        event_id: str | None = None,
        key: str | None = None,
        event_time: str | None = None,
        watermark: Fields | None = None,
        on_error: Literal["divert", "fail"] | None = None,
        max_error_rate: float | None = None,
        **connector: Fields,
    ) -> Stream:
        """Adds a source; its connector is named by an argument, such as `files={...}`."""
        fields = {
            "format": format,
            "schema": schema,
            "event_id": event_id,
            "key": key,
            "event_time": event_time,
            "watermark": watermark,
            "on_error": on_error,
            "max_error_rate": max_error_rate,
        }
        return self._add("sources", id, {**connector, **_given(fields)})

    def union(self, id: str, *streams: Stream) -> Stream:
        """Puts streams of the same columns together."""
        return self._add("operators", id, {"type": "union", "inputs": [stream.reference for stream in streams]})

    def test(self, name: str, *, input: Mapping[str, Sequence[Fields]], expect: Mapping[str, Sequence[Fields]]) -> None:
        """Adds one of the job's `tests:`."""
        self._data.setdefault("tests", []).append(_plain({"name": name, "input": input, "expect": expect}))

    def to_dict(self) -> dict[str, Any]:
        written = {name: value for name, value in self._data.items() if value != {}}
        return json.loads(emit.to_json(written))  # type: ignore[no-any-return]  # a copy: the job stays its own

    def to_yaml(self) -> str:
        return emit.to_yaml(self.to_dict())

    def to_json(self) -> str:
        return emit.to_json(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str) -> Job:
        """Reads a definition. Raises DefinitionError when its shape is wrong."""
        definition, diagnostics = parse(text)
        if definition is None:
            raise DefinitionError(diagnostics)
        return cls.from_definition(definition)

    @classmethod
    def from_json(cls, text: str) -> Job:
        return cls.from_yaml(text)

    @classmethod
    def from_definition(cls, definition: JobDefinition) -> Job:
        job = cls(definition.name)
        job._data |= definition.to_dict()
        return job

    def validate(self) -> tuple[Diagnostic, ...]:
        """The warnings. Raises DefinitionError with every error; positions refer to `to_yaml()`."""
        return compile_job(self.to_yaml()).warnings

    def run(self, *, until_drained: bool = False, fresh: bool = False, base: Path | None = None) -> dict[str, Any]:
        """Runs the job on this machine and returns its summary; relative paths are relative to `base`.

        Raises DefinitionError before anything starts, another TidemarkError when the job fails.
        """
        from tidemark.cli.local import run_job

        return run_job(self.to_yaml(), base=base or Path.cwd(), until_drained=until_drained, fresh=fresh)

    def _add(self, section: str, id_: str, fields: Fields) -> Stream:
        if any(id_ in self._data[known] for known in ("sources", "operators", "sinks")):
            raise UsageError(f"the job already has something called {id_!r}", hint="give each part an id of its own")
        self._data[section][id_] = _plain(fields)
        return Stream(self, id_)


class Stream:
    """An output of a source or operator: what the next step reads."""

    def __init__(self, job: Job, reference: str) -> None:
        self._job = job
        self.reference = reference

    @property
    def late(self) -> Stream:
        return self.port("late")

    @property
    def errors(self) -> Stream:
        return self.port("errors")

    def port(self, name: str) -> Stream:
        return Stream(self._job, f"{self.reference.partition('.')[0]}.{name}")

    def __getattr__(self, name: str) -> Stream:
        """A port of a branch, by its name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.port(name)

    def filter(self, id: str, where: str) -> Stream:
        return self._next(id, "filter", where=where)

    def map(
        self,
        id: str,
        select: Mapping[str, str] | None = None,
        *,
        set: Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
    ) -> Stream:
        return self._next(id, "map", select=select, set=set, drop=drop)

    def flat_map(self, id: str, each: str, name: str) -> Stream:
        return self._next(id, "flat_map", each=each, **{"as": name})

    def branch(self, id: str, when: Mapping[str, str]) -> Stream:
        return self._next(id, "branch", when=when)

    def union(self, id: str, *others: Stream) -> Stream:
        return self._job.union(id, self, *others)

    def dedup(self, id: str, *, within: str, by: Sequence[str] | None = None) -> Stream:
        return self._next(id, "dedup", by=by, within=within)

    def window(
        self,
        id: str,
        *,
        window: Fields,
        aggregate: Mapping[str, str],
        key: Key | None = None,
        emit: Literal["on_close", "on_update"] | None = None,
        allowed_lateness: str | None = None,
    ) -> Stream:
        fields = {"key": key, "window": window, "aggregate": aggregate, "emit": emit}
        return self._next(id, "window", **fields, allowed_lateness=allowed_lateness)

    def aggregate(self, id: str, *, aggregate: Mapping[str, str], key: Key | None = None) -> Stream:
        return self._next(id, "aggregate", key=key, aggregate=aggregate)

    def sink(self, id: str, **connector: Fields) -> Sink:
        """Writes this output; the connector is named by an argument, such as `sqlite={...}`."""
        self._job._add("sinks", id, {"input": self.reference, **connector})
        return Sink(Stream(self._job, f"{id}.errors"))

    def _next(self, id_: str, type_: str, **fields: Any) -> Stream:
        return self._job._add("operators", id_, {"type": type_, "input": self.reference, **_given(fields)})


@dataclass(frozen=True)
class Sink:
    """Where an output is written; `errors` are the rows that the target refuses by their content."""

    errors: Stream


def _given(fields: Fields) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    """A copy made of what JSON can hold, so that later changes by the caller do not reach the job."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise UsageError(
        f"a job cannot hold {value!r}, a {type(value).__name__}",
        hint="use text, numbers, booleans, lists and mappings; write times as ISO-8601 text",
    )
