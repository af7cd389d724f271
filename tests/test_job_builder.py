"""The Python builder writes what YAML writes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import tidemark
from tidemark.compiler.definition.parse import parse
from tidemark.errors import DefinitionError, UsageError
from tidemark.job import Job

TEXT = """\
tidemark: 1
name: orders-per-minute
parallelism: 2
sources:
  orders:
    files: {path: in, format: jsonl}
    schema: {id: string, store: string, amount: double, words: string, ts: timestamp}
    event_time: ts
    watermark: {delay: 5s}
operators:
  valid: {type: filter, input: orders, where: amount > 0}
  once: {type: dedup, input: valid, within: 10m}
  split: {type: branch, input: once, when: {vip: amount > 100}}
  tagged: {type: map, input: split.vip, set: {store: upper(store)}}
  all: {type: union, inputs: [split, tagged]}
  each: {type: flat_map, input: all, each: "split(words, ' ')", as: word}
  per_min: {type: window, input: each, key: [store], window: {tumbling: 1m}, aggregate: {orders: count()}}
  totals: {type: aggregate, input: all, key: {s: store}, aggregate: {total: sum(amount)}}
sinks:
  out: {input: per_min, sqlite: {path: out.db, table: orders, key: [store, window_start]}}
  late: {input: per_min.late, files: {path: late, format: jsonl}}
  sums: {input: totals, console: {}}
  bad: {input: orders.errors, console: {}}
tests:
- {name: nothing, input: {orders: [{crash: true}]}, expect: {out: []}}
"""


def build() -> Job:
    job = Job("orders-per-minute", parallelism=2)
    schema = {"id": "string", "store": "string", "amount": "double", "words": "string", "ts": "timestamp"}
    orders = job.source(
        "orders",
        files={"path": Path("in"), "format": "jsonl"},
        schema=schema,
        event_time="ts",
        watermark={"delay": "5s"},
    )
    split = orders.filter("valid", "amount > 0").dedup("once", within="10m").branch("split", {"vip": "amount > 100"})
    everything = split.union("all", split.vip.map("tagged", set={"store": "upper(store)"}))
    words = everything.flat_map("each", "split(words, ' ')", "word")
    per_min = words.window("per_min", key=("store",), window={"tumbling": "1m"}, aggregate={"orders": "count()"})
    per_min.sink("out", sqlite={"path": "out.db", "table": "orders", "key": ["store", "window_start"]})
    per_min.late.sink("late", files={"path": "late", "format": "jsonl"})
    everything.aggregate("totals", key={"s": "store"}, aggregate={"total": "sum(amount)"}).sink("sums", console={})
    orders.errors.sink("bad", console={})
    job.test("nothing", input={"orders": [{"crash": True}]}, expect={"out": []})
    return job


def test_builder_and_text_are_the_same_definition() -> None:
    definition, found = parse(TEXT)
    assert found == ()
    assert definition is not None
    assert parse(build().to_yaml())[0] == definition
    assert parse(build().to_json())[0] == definition
    assert build().to_dict() == definition.to_dict()


def test_a_job_comes_back_from_its_own_texts() -> None:
    for again in (Job.from_yaml(build().to_yaml()), Job.from_json(build().to_json()), Job.from_yaml(TEXT)):
        assert again.to_dict() == build().to_dict()


def test_a_read_job_can_be_extended() -> None:
    job = Job.from_yaml(TEXT)
    more = job.source("more", files={"path": "b", "format": "text"})
    more.sink("shown", console={})
    assert list(job.to_dict()["sources"]) == ["orders", "more"]


def test_validate_gives_warnings_or_raises_everything() -> None:
    assert [found.code for found in build().validate()] == ["port_not_connected"]
    job = Job("Bad Name")
    job.source("s", files={"path": "a", "format": "text"}).filter("f", "vlaue = 'x'").sink("o", console={})
    with pytest.raises(DefinitionError) as caught:
        job.validate()
    assert [found.code for found in caught.value.diagnostics] == ["bad_id", "unknown_column"]


def test_ports_are_attributes_or_named() -> None:
    branch = Job("x").source("s", files={}).branch("b", {"vip": "a"})
    assert branch.vip.reference == branch.port("vip").reference == "b.vip"
    assert branch.vip.port("late").reference == "b.late"
    with pytest.raises(AttributeError):
        _ = branch._private


def test_an_id_can_be_used_once() -> None:
    job = Job("x")
    stream = job.source("s", files={})
    with pytest.raises(UsageError, match="'s'"):
        stream.sink("s", console={})


def test_values_that_a_definition_cannot_hold_are_refused_where_they_are_given() -> None:
    with pytest.raises(UsageError, match="datetime") as caught:
        Job("x").source("s", generator={"start": datetime(2026, 1, 1)})
    assert caught.value.hint


def test_later_changes_by_the_caller_do_not_reach_the_job() -> None:
    options: dict[str, Any] = {"path": "a", "format": "text"}
    job = Job("x")
    job.source("s", files=options)
    options["path"] = "b"
    job.to_dict()["sources"].clear()
    assert job.to_dict()["sources"]["s"]["files"]["path"] == "a"


def test_run_hands_the_definition_to_the_local_runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    def run_job(definition_text: str, **options: Any) -> dict[str, Any]:
        calls.append({"text": definition_text, **options})
        return {"state": "FINISHED"}

    monkeypatch.setattr("tidemark.cli.local.run_job", run_job)
    assert build().run(until_drained=True, base=tmp_path) == {"state": "FINISHED"}
    (call,) = calls
    assert parse(call.pop("text"))[0] == parse(TEXT)[0]
    assert call == {"base": tmp_path, "until_drained": True, "fresh": False}


def test_the_package_exports_the_builder_only_when_asked() -> None:
    assert tidemark.Job is Job
    with pytest.raises(AttributeError, match="nothing"):
        _ = tidemark.nothing
