"""One job for each way to be wrong, in `legality/*.txt`: `=== code | path | name | part of the message`, then the text.

`^` marks the place that must be reported. A text without sources follows the source `orders` of `support.jobs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from support.jobs import codes, diagnostics, job

from tidemark.compiler.diagnostics.codes import CODES

FOLDER = Path(__file__).parent / "legality"
MARK = "^"

# Column names are different in more than their case before an expression is checked.
UNREACHABLE = {"ambiguous_column"}


@dataclass(frozen=True)
class Wrong:
    code: str
    path: str
    name: str
    says: str
    text: str

    @property
    def place(self) -> tuple[int, int]:
        before = self.text[: self.text.index(MARK)]
        return before.count("\n") + 1, len(before) - before.rfind("\n")


def wrong_jobs(file: Path) -> Iterator[Wrong]:
    for part in file.read_text().split("=== ")[1:]:
        head, _, text = part.partition("\n")
        code, path, name, says = (*(field.strip() for field in head.split("|")), "")[:4]
        text = text.removesuffix("\n")
        yield Wrong(code, path, name, says, text if file.stem == "text" or "sources:" in text else job(text))


WRONG = [wrong for file in sorted(FOLDER.glob("*.txt")) for wrong in wrong_jobs(file)]
SINK = "sinks: {o: {input: orders, console: {}}}"
LONG = "n > 0" + " or n > 0" * 10_000
WRONG += [
    Wrong("empty_document", "", "nothing", "", "^"),
    Wrong("bad_character", "", "control character", "U+0001", "tidemark: ^\x01"),
    Wrong("too_large", "", "long comment", "", "^tidemark: 1\n" + "# x\n" * 150_000),
    Wrong("bad_duration", "epoch.interval", "digits", "", job(f"epoch: {{interval: ^{'9' * 5000}d}}\n{SINK}")),
    Wrong(
        "expression_too_long",
        "operators.f.where",
        "long",
        "",
        job(f'operators: {{f: {{type: filter, input: orders, where: "^{LONG}"}}}}\n{SINK}'),
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{wrong.code}: {wrong.name}" for wrong in WRONG])
def test_what_is_wrong_is_said_once_and_in_its_place(wrong: Wrong) -> None:
    found = diagnostics(wrong.text.replace(MARK, ""))
    assert [(one.code, one.path, (one.line, one.column)) for one in found] == [(wrong.code, wrong.path, wrong.place)]
    assert wrong.says in found[0].message
    assert found[0].hint


def test_every_code_but_the_warnings_has_a_job_that_earns_it() -> None:
    earned = {wrong.code for wrong in WRONG}
    assert {code.code for code in CODES if code.group != "warnings"} - earned == UNREACHABLE


def test_all_mistakes_are_reported_at_once_and_none_twice() -> None:
    text = job("""\
        operators:
          bad_where: {type: filter, input: orders, where: amuont > 0}
          behind: {type: filter, input: bad_where, where: nonsense(}
          no_input: {type: filter, input: nobody, where: n > 0}
          bad_shape: {type: window, input: orders, window: {tumbling: 1 minute}, aggregate: {c: count()}}
          after_shape: {type: filter, input: bad_shape, where: c > 0}
          sound: {type: filter, input: orders, where: n > 0}
        sinks:
          a: {input: behind, console: {}}
          b: {input: after_shape, sqlite: {path: a, table: t, mode: upsert}}
          c: {input: sound, sqlite: {path: a, table: t, key: [m]}}
        """)
    assert codes(text) == [
        "unknown_column", "expression_syntax", "unknown_input", "bad_duration", "missing_key", "unknown_column",
    ]  # fmt: skip


def test_a_broken_source_hides_nothing_that_is_wrong_behind_it() -> None:
    text = """\
        tidemark: 1
        name: many
        sources:
          s:
            files: {path: in, format: jsonl, colour: red}
            schema: {a: int, b: strin, ts: timestamp}
            event_time: ts
            watermark: {delay: 5 parsecs}
        operators:
          typo: {type: filter, input: s, where: amuont > 0}
          code: {type: filter, input: s, where: reflect('x') = b}
          right: {type: filter, input: s, where: b > 0 and a = 'text'}
          visits: {type: window, input: typo, window: {session: 5m}, aggregate: {n: count()}, emit: on_update}
          x: {type: filter, input: y, where: a > 0}
          y: {type: filter, input: x, where: rand() > 0}
        sinks:
          out: {input: visits, sqlite: {path: o.db, table: t, mode: upsert}}
          lost: {sqlite: {path: o.db, table: u}}
        """
    assert codes(dedent(text)) == [
        "unknown_field", "bad_type", "bad_duration", "unknown_column", "function_not_allowed", "session_on_update",
        "cycle", "non_deterministic", "missing_key", "missing_field",
    ]  # fmt: skip


def test_an_unreadable_type_does_not_hide_a_role_that_names_no_column() -> None:
    source = "files: {path: in, format: jsonl}, schema: {a: strin, t: timestamp}, event_time: ts, key: b, event_id: a"
    text = f"tidemark: 1\nname: x\nsources: {{s: {{{source}}}}}\nsinks: {{o: {{input: s, console: {{}}}}}}\n"
    assert codes(text) == ["bad_type", "unknown_column", "unknown_column"]


CUT_SOURCES = {
    "column": ("files: {path: in, format: jsonl}, schema: {id: 5, t: timestamp}, event_id: id", "wrong_type"),
    "generated": ("generator: {count: 5, columns: {id: 5, b: n}}", "wrong_type"),
    "rate": ("generator: {rate: fast, columns: {id: n}}", "wrong_type"),
    "partitions": ("files: {path: in, format: jsonl, partition: id, partitions: 0}, schema: {id: int}", "bad_value"),
    "misspelt": ("files: {path: in, format: text}, schma: {id: string}", "unknown_field"),
}


@pytest.mark.parametrize(("source", "code"), CUT_SOURCES.values(), ids=CUT_SOURCES.keys())
def test_what_was_left_out_of_a_source_is_not_missed_behind_it(source: str, code: str) -> None:
    behind = "operators: {f: {type: filter, input: s, where: id > 3}}\nsinks: {o: {input: f, console: {}}}"
    assert codes(f"tidemark: 1\nname: cut\nsources: {{s: {{{source}}}}}\n{behind}\n") == [code]


def test_what_reads_a_broken_filter_is_checked_as_if_it_were_whole() -> None:
    text = job("""\
        operators:
          typo: {type: filter, input: orders, where: amuont > 0}
          per_minute: {type: window, input: typo, key: [n], window: {tumbling: 1m}, aggregate: {total: sum(n)}}
          twice: {type: map, input: per_minute, set: {two: totl * 2}}
        sinks:
          out: {input: per_minute, sqlite: {path: o.db, table: t, key: [m]}}
          late: {input: per_minute.late, files: {path: late, format: jsonl}}
          more: {input: twice, console: {}}
        """)
    assert codes(text) == ["unknown_column"] * 3


def test_a_sink_is_no_input_even_when_it_is_broken() -> None:
    sinks = "sinks: {a: {input: nowhere, console: {}}, b: {input: a, console: {}}}"
    assert codes(job(sinks)) == ["unknown_input", "unknown_input"]


def test_a_sink_whose_input_is_broken_is_not_checked_but_its_shape_is() -> None:
    assert codes(job("sinks: {a: {input: orders.nope, sqlite: {path: 5, table: t}}}")) == ["wrong_type"]


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("sinks: {o: {input: orders, console: {}}}", [("port_not_connected", "sources.orders", 4, 3)]),
        ("sinks: {o: {input: orders, console: {}}, e: {input: orders.errors, console: {}}}", []),
        (
            """\
            operators:
              d: {type: dedup, input: orders, within: 1m}
              f: {type: filter, input: orders, where: n > 0}
              b: {type: branch, input: d, when: {vip: n > 5}}
            sinks: {o: {input: b, console: {}}, e: {input: orders.errors, console: {}}}
            """,
            [
                ("port_not_connected", "operators.d", 9, 3),
                ("unused", "operators.f", 10, 3),
                ("unused", "operators.b.when.vip", 11, 38),
            ],
        ),
    ],
)
def test_warnings(rest: str, expected: list[tuple[str, str, int, int]]) -> None:
    found = diagnostics(job(rest))
    assert [(one.code, one.path, one.line, one.column) for one in found] == expected
    assert all(one.severity == "warning" and one.hint for one in found)


@pytest.mark.parametrize(
    "operator",
    [
        "{type: window, input: orders, window: {sliding: 10m, every: 3m}, aggregate: {c: count()}}",
        "{type: window, input: orders, window: {sliding: 10m, every: 10m, offset: 9m}, aggregate: {c: count()}}",
        "{type: window, input: orders, window: {session: 1m}, aggregate: {c: count()}, allowed_lateness: 0s}",
        "{type: window, input: orders, window: {tumbling: 1m}, key: {h: n % 2, k: _key}, aggregate: {c: count()}}",
        "{type: aggregate, input: orders, aggregate: {c: count()}}",
        "{type: dedup, input: orders, by: [_event_id, store], within: 10m}",
        "{type: flat_map, input: orders, each: \"split(store, ' ')\", as: word}",
        "{type: map, input: orders, set: {n: n + 1, day: cast(_event_time as date)}, drop: [tags]}",
    ],
)
def test_what_is_allowed(operator: str) -> None:
    found = diagnostics(job(f"operators:\n  op: {operator}\nsinks: {{o: {{input: op, console: {{}}}}}}\n"))
    assert {one.severity for one in found} <= {"warning"}
