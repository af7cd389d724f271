"""A real run into a real PostgreSQL that is down at the start, killed on the way, and changed at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from connectors.postgres.writing import query, run
from faults.conftest import ended
from faults.running import PATIENCE, Run, driver_log, job_folder
from support.waiting import wait_until

from tidemark.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.slow]
JOB = """\
tidemark: 1
name: shop
parallelism: 1
sources:
  orders:
    files: {path: in, format: jsonl, max_files_per_epoch: 1}
    schema: {id: string, amount: long}
sinks:
  out: {input: orders, postgres: {url: $PG, table: orders, key: [id]}}
  bad: {input: orders.errors, postgres: {url: $PG, table: bad}}
"""


def write(folder: Path, number: int) -> None:
    staged = folder / f".{number}"
    lines = [json.dumps({"id": f"{number}-{n}", "amount": n}) for n in range(5)]
    staged.write_text("\n".join([*lines, "no order", ""]))
    os.utime(staged, (1_700_000_000 + number,) * 2)
    staged.rename(folder / "in" / f"{number}.jsonl")


def retries(folder: Path) -> int:
    return driver_log(folder).count("trying again") if (job_folder(folder) / "driver.log").exists() else 0


def held(database: str) -> int:
    ((rows,),) = query(database, "SELECT coalesce(sum(rows), 0)::int FROM _tidemark_ledger WHERE sink = 'out'")
    return int(rows)


def until(shop: Run, condition: Callable[[], object]) -> None:
    wait_until(lambda: condition() or shop.has_ended(), PATIENCE)
    assert condition(), shop.words


def test_a_run_waits_for_its_database_and_names_what_it_cannot_wait_for(
    tmp_path: Path, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG", database)
    (tmp_path / "in").mkdir()
    (tmp_path / "job.yaml").write_text(JOB)
    write(tmp_path, 0)
    postgres.kill()
    with ended(Run(tmp_path)) as shop:
        until(shop, lambda: retries(tmp_path))
        postgres.start()
        until(shop, lambda: query(database, "SELECT to_regclass('_tidemark_ledger')") != [(None,)])
        until(shop, lambda: held(database) == 5)

        before = retries(tmp_path)
        postgres.kill()
        write(tmp_path, 1)
        until(shop, lambda: retries(tmp_path) > before)
        postgres.start()
        until(shop, lambda: query(database, "SELECT count(*)::int FROM orders") == [(10,)])
        until(shop, lambda: query(database, "SELECT count(*)::int, min(_raw) FROM bad") == [(2, b"no order")])

        run(database, "ALTER TABLE orders RENAME COLUMN amount TO price")
        write(tmp_path, 2)
        outcome = shop.wait()
    assert outcome.code == 1
    assert (outcome.summary["state"], outcome.summary["error"]["code"]) == ("FAILED", "sink_mismatch")
    assert outcome.summary["error"]["hint"]
    assert shop.attempts() == [1]
    password = database.split(":")[2].split("@")[0]
    assert password not in driver_log(tmp_path) + "".join(line for _, line in shop.words) + json.dumps(outcome.summary)
    assert query(database, "SELECT count(*)::int FROM orders") == [(10,)]
