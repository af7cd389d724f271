"""The models of a job definition: one for the job, one each for a source, an operator and a sink.

A source or sink names its connector by a field of that name; operators are told apart by `type`, and the fields
of each type live with the operator. `to_dict` gives back what was written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from tidemark.compiler.definition import emit
from tidemark.compiler.definition.case import CaseDefinition
from tidemark.compiler.definition.model import Duration, JobName, Model, PositiveDuration, Text
from tidemark.compiler.definition.options import SinkOptions, SourceOptions
from tidemark.compiler.diagnostics.diagnostic import Path


class WatermarkDefinition(Model):
    delay: Duration = "5s"
    idle_timeout: PositiveDuration = "30s"
    max_future: Duration = "1h"


class EpochDefinition(Model):
    """When an epoch begins and how many events it takes at most."""

    interval: Duration = "0ms"
    max_events: Annotated[int, Field(ge=1, le=2**31 - 1)] = 500_000


class SourceFields(Model):
    """What a source says beside its connector."""

    format: Text | None = None
    columns: dict[str, str] | None = Field(None, alias="schema")
    event_id: Text | None = None
    key: Text | None = None
    event_time: Text | None = None
    watermark: WatermarkDefinition = WatermarkDefinition()
    on_error: Literal["divert", "fail"] = "divert"
    max_error_rate: Annotated[float, Field(ge=0, le=1)] | None = None


class SourceDefinition(SourceFields):
    """`options` is None for a connector that is still to come."""

    connector: str
    options: SerializeAsAny[SourceOptions] | None

    def to_dict(self) -> dict[str, Any]:
        return _with_connector(self.connector, self.options, super().to_dict())


class SinkFields(Model):
    input: Text


class SinkDefinition(SinkFields):
    """`options` is None for a connector that is still to come."""

    connector: str
    options: SerializeAsAny[SinkOptions] | None

    def to_dict(self) -> dict[str, Any]:
        return _with_connector(self.connector, self.options, super().to_dict())


def _with_connector(connector: str, options: Model | None, fields: dict[str, Any]) -> dict[str, Any]:
    named = {connector: options.to_dict() if options else {}}
    return {**named, **{name: value for name, value in fields.items() if name not in ("connector", "options")}}


class OperatorDefinition(Model):
    """What all operators have in common; each type adds its fields."""

    type: str

    def references(self) -> tuple[tuple[Path, str], ...]:
        """The outputs it reads, with the path of each in its definition."""
        raise NotImplementedError


class OneInput(OperatorDefinition):
    input: Text

    def references(self) -> tuple[tuple[Path, str], ...]:
        return ((("input",), self.input),)


class JobFields(Model):
    """What is said about the job as a whole."""

    tidemark: Literal[1]
    name: JobName
    mode: Literal["microbatch", "realtime", "backfill"] = "microbatch"
    parallelism: Annotated[int, Field(ge=1, le=1024)] | None = None
    epoch: EpochDefinition = EpochDefinition()
    sink_retry: Duration = "5m"


class JobDefinition(JobFields):
    """A whole job, each part of it valid in itself; whether they fit together is for the graph to say."""

    sources: dict[str, SourceDefinition]
    operators: dict[str, SerializeAsAny[OperatorDefinition]] = Field(default_factory=dict)
    sinks: dict[str, SinkDefinition]
    tests: tuple[CaseDefinition, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data with what was written and nothing that was not."""
        members = ("sources", "operators", "sinks")
        data = self.model_dump(mode="json", exclude_unset=True, exclude={*members, "tests"})
        for section in members:
            parts: dict[str, Model] = getattr(self, section)
            if parts:
                data[section] = {id_: part.to_dict() for id_, part in parts.items()}
        if self.tests:
            data["tests"] = [case.to_dict() for case in self.tests]
        return data

    def to_yaml(self) -> str:
        return emit.to_yaml(self.to_dict())

    def to_json(self) -> str:
        return emit.to_json(self.to_dict())
