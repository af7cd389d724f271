"""Random jobs that the compiler takes: sources, a few operators of every kind, several sinks, side ports read or not.

Each is grown step by step, and a step that the compiler refuses is taken back, so that nothing here has to know what
fits together.
"""

from __future__ import annotations

import json
import random
from typing import Any

from tidemark.compiler.compile import compile_job
from tidemark.compiler.plan.plan import ExecutionPlan
from tidemark.errors import TidemarkError

Columns = dict[str, str]
START = "2026-01-01T00:00:00Z"
MADE = {
    "id": "cast(n % 3 as int)",
    "text": "concat('t', n % 11)",
    "value": "cast(n as double) / 4",
    "flag": "n % 2 = 0",
    "price": "cast(n as decimal(10,2))",
}
WINDOWS: tuple[dict[str, str], ...] = (
    {"tumbling": "5s"},
    {"tumbling": "4s", "offset": "1s"},
    {"sliding": "6s", "every": "2s"},
    {"sliding": "5s", "every": "2s"},
    {"session": "1s"},
)
ANY_VALUE = ("count", "min", "max", "first", "last", "count_distinct", "approx_distinct")
NUMBERS = ("sum", "avg", "stddev", "variance")


class RandomJob:
    """`same_in_any_way`: whether its results depend on nothing but its events, by what SPEC says of its operators."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._job: dict[str, Any] = {"tidemark": 1, "name": "random", "sources": {}, "operators": {}, "sinks": {}}
        self._columns: dict[str, Columns] = {}
        self._sides: list[str] = []
        self.same_in_any_way = True
        self._grow()

    @property
    def sinks(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self._job["sinks"]
        return found

    @property
    def operators(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self._job["operators"]
        return found

    def text(self, parallelism: int, max_events: int) -> str:
        return json.dumps({**self._job, "parallelism": parallelism, "epoch": {"max_events": max_events}})

    def _grow(self) -> None:
        ends = [self._add_source() for _ in range(self._chance.choice([1, 1, 2]))]
        if len(ends) == 2 and self._add("operators", "both", {"type": "union", "inputs": list(ends)}, ends[0]):
            ends = ["both"]
        for number in range(self._chance.randint(1, 4)):
            before = self._chance.choice(sorted(self._columns))
            if self._add_operator(f"step{number}", before):
                ends = [*(end for end in ends if end != before), f"step{number}"]
        for end in ends:
            self._add_sinks(end, self._chance.choice([1, 2]))
        for side in self._sides:
            self._add_sinks(side, self._chance.choice([0, 1]))

    def _add_source(self) -> str:
        name = f"source{len(self._job['sources'])}"
        made = {"count": 60, "rate": 10, "start": START, "columns": MADE}
        order = {"out_of_order": {"fraction": 0.3, "max": "3s"}, "partitions": self._chance.randint(1, 3)}
        self._job["sources"][name] = {"generator": {**made, **order}, "watermark": {"delay": "4s"}}
        self._columns[name] = {"id": "int", "text": "string", "value": "double", "flag": "boolean", "price": "decimal"}
        self._sides.append(f"{name}.errors")
        return name

    def _add_operator(self, name: str, before: str) -> bool:
        kind = self._chance.choice([self._window, self._window, self._stateless, self._stateless, self._rare])
        plan = {"input": before, **kind(self._columns[before])}
        if not self._add("operators", name, plan, before):
            return False
        if plan["type"] in ("window", "dedup"):
            self._sides.append(f"{name}.late")
        if plan["type"] == "branch":
            self._columns |= {f"{name}.{port}": self._columns[name] for port in plan["when"]}
        self.same_in_any_way &= plan["type"] not in ("dedup", "aggregate") and plan.get("emit") != "on_update"
        return True

    def _stateless(self, columns: Columns) -> dict[str, Any]:
        return self._chance.choice(
            [
                {"type": "filter", "where": self._condition(columns)},
                {"type": "map", "set": {self._chance.choice([*columns, "extra"]): self._value(columns)}},
                {"type": "map", "select": {f"c{n}": self._value(columns) for n in range(3)}},
                {"type": "map", "drop": [self._chance.choice(sorted(columns))]},
                {"type": "flat_map", "each": f"split({self._chance.choice(sorted(columns))}, '1')", "as": "word"},
                {"type": "branch", "when": {"hot": self._condition(columns), "warm": self._condition(columns)}},
            ]
        )

    def _window(self, columns: Columns) -> dict[str, Any]:
        emit = self._chance.choice(["on_close", "on_close", "on_close", "on_update"])
        shape = {"window": self._chance.choice(WINDOWS), "emit": emit}
        return {"type": "window", "key": self._key(columns), "aggregate": self._aggregates(columns), **shape}

    def _rare(self, columns: Columns) -> dict[str, Any]:
        by = self._chance.choice([["_event_id"], [self._chance.choice(sorted(columns)), "_partition"]])
        running = {"type": "aggregate", "key": self._key(columns), "aggregate": self._aggregates(columns)}
        return self._chance.choice([{"type": "dedup", "by": by, "within": "1m"}, running])

    def _add_sinks(self, of: str, number: int) -> None:
        for _ in range(number):
            name = f"sink{len(self.sinks)}"
            to: dict[str, Any] = self._chance.choice(
                [
                    *({"files": {"path": name, "format": format_}} for format_ in ("jsonl", "csv", "parquet")),
                    {"sqlite": {"path": f"{name}.db", "table": "t", "mode": "append"}},
                ]
            )
            self._add("sinks", name, {"input": of, **to}, of)

    def _add(self, part: str, name: str, item: dict[str, Any], before: str) -> bool:
        """Takes the item back if the compiler refuses it; an operator's columns are what the compiler says."""
        self._job[part][name] = item
        try:
            plan = compile_job(self._with_a_sink(name if part == "operators" else None)).plan
        except TidemarkError:
            del self._job[part][name]
            return False
        if part == "operators":
            self._columns[name] = _output(plan, name) or self._columns[before]
        return True

    def _with_a_sink(self, of: str | None) -> str:
        probe = {"probe": {"input": of, "console": {}}} if of else {}
        return json.dumps({**self._job, "sinks": {**self.sinks, **probe}})

    def _condition(self, columns: Columns) -> str:
        found = ["_partition = 0", f"_event_time > timestamp '{START}'"]
        for name, type_ in columns.items():
            found += {"string": [f"{name} like 't1%'", f"{name} is not null"], "boolean": [name]}.get(
                type_, [f"{name} > 2"]
            )
        return self._chance.choice(found)

    def _value(self, columns: Columns) -> str:
        found = ["1", "'k'", "_event_time", "_key", "_offset", *columns]
        for name, type_ in columns.items():
            found += [f"upper({name})", f"concat({name}, '-')"] if type_ == "string" else [f"{name} + 1"]
        return self._chance.choice(found)

    def _key(self, columns: Columns) -> list[str] | dict[str, str]:
        some = self._chance.sample(sorted(columns), min(len(columns), self._chance.randint(0, 2)))
        return some if self._chance.random() < 0.7 else {"k": self._value(columns)}

    def _aggregates(self, columns: Columns) -> dict[str, str]:
        first = next(iter(columns))
        found = ["count()"]
        for name, type_ in columns.items():
            found += [f"{function}({name})" for function in ANY_VALUE]
            found += [f"collect_list({name}, 3)", f"collect_set({name}, 4)", f"max_by({name}, {first})"]
            found += [f"approx_top_k({name}, 2)"]
            if type_ not in ("string", "boolean"):
                found += [f"{function}({name})" for function in NUMBERS]
        chosen = self._chance.sample(found, min(len(found), self._chance.randint(1, 5)))
        return {f"a{number}": text for number, text in enumerate(chosen)}


def _output(plan: ExecutionPlan, operator: str) -> Columns:
    columns = getattr(plan.operators[operator], "output", ())
    return {column.name: column.type.partition("(")[0] for column in columns}
