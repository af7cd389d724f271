"""`tidemark run` as a user calls it: a real process, exit codes, and what is on which stream."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli.driving import CRASH, FINISH, JOB, SERVE, Scenario, Step, finish, scenario, start_command, tidemark
from support.processes import is_alive
from support.waiting import wait_until

from tidemark.stored_secrets import StoredSecrets

SUMMARY = {
    "state": "FINISHED",
    "epochs": 3,
    "watermark": "9999-12-31T23:59:59Z",
    "sources": {"orders": {"in": 30, "accepted": 29, "errors": 1}},
    "operators": {"per_min": {"rows_in": 29, "rows_out": 2, "late": 2, "filtered": 0, "duplicates": 0}},
    "sinks": {"out": {"rows": 2}, "late": {"rows": 0}, "bad": {"rows": 0}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def failing(code: str, retry: str = "never", domain: str = "user") -> dict[str, list[Step]]:
    return {"*": [["started"], ["failed", code, domain, retry, "it is so"], ["exit", 1]]}


def test_a_finished_run(folder: Path) -> None:
    driver = scenario(folder, {"*": FINISH})
    answer = tidemark(folder, "run", "job.yaml", "--until-drained", driver=driver)
    assert (answer.code, answer.out) == (0, "")
    assert "FINISHED after 3 epochs" in answer.err
    assert "orders: in 30 = accepted 29 + errors 1" in answer.err
    spec = driver.diary("start")[0]["spec"]
    assert spec["until_drained"] is True
    assert spec["base"] == str(folder)
    assert spec["plan"]["job"] == "shop"
    assert Path(spec["state"]) == folder / ".tidemark/jobs/shop/queries"
    assert (folder / ".tidemark/jobs/shop/definition.yaml").read_text() == JOB


def test_json_is_one_object_and_all_else_is_on_standard_error(folder: Path) -> None:
    steps: list[Step] = [["console", "row 1"], ["warning", "careful"], ["garbage", "noise\n"], ["log", "log"], *FINISH]
    answer = tidemark(folder, "run", "job.yaml", "--json", driver=scenario(folder, {"*": steps}))
    assert answer.code == 0
    assert answer.json == SUMMARY
    assert answer.out.count("\n") == 1
    assert "row 1\n" in answer.err
    assert "careful" in answer.err
    assert "\x1b" not in answer.err


def test_console_rows_alone_are_on_standard_output(folder: Path) -> None:
    steps: list[Step] = [["console", "row 1"], ["console", "zwei ✓"], *FINISH]
    answer = tidemark(folder, "run", "job.yaml", driver=scenario(folder, {"*": steps}))
    assert answer.out == "row 1\nzwei ✓\n"


def test_progress_is_at_most_one_line_a_second(folder: Path) -> None:
    steps: list[Step] = [["started"], *(["epoch", number] for number in range(300)), ["ended", "FINISHED"]]
    answer = tidemark(folder, "run", "job.yaml", driver=scenario(folder, {"*": steps}))
    lines = [line for line in answer.err.splitlines() if "epoch=" in line]
    assert 1 <= len(lines) <= 5
    assert "watermark=2026-01-01T00:01:00Z" in lines[0]
    assert "lag=7" in lines[0]


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("not_fresh", 2), ("setting_missing", 2), ("sink_mismatch", 1), ("too_many_errors", 1), ("never_heard_of", 1)],
)
def test_a_failure_of_the_driver_decides_the_exit_code(folder: Path, code: str, exit_code: int) -> None:
    answer = tidemark(folder, "run", "job.yaml", "--json", driver=scenario(folder, failing(code)))
    assert answer.code == exit_code
    assert answer.json["state"] == "FAILED"
    assert answer.json["error"] == {"code": code, "message": "it is so", "hint": "do this"}
    assert f"error[{code}]: it is so\n  hint: do this" in answer.err


def test_no_secret_is_shown_or_logged(folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB.replace("out.db", "$PLACE/$STORED.db"))
    StoredSecrets.of(folder / ".tidemark").set("STORED", "kept in the home", datetime.now(UTC))
    told = "cannot reach well-hidden/kept in the home.db"
    steps: list[Step] = [["log", told], ["console", told], ["warning", told], ["failed", "x", "user", "never", told]]
    answer = tidemark(folder, "run", "job.yaml", "--json", driver=scenario(folder, {"*": steps}), PLACE="well-hidden")
    assert answer.json["error"]["message"] == "cannot reach $PLACE/$STORED.db"
    # What a job writes for people is its data.
    assert [line for line in answer.err.splitlines() if "hidden" in line] == [told]
    assert (folder / ".tidemark/jobs/shop/driver.log").read_text() == "cannot reach $PLACE/$STORED.db\n"


def test_a_killed_driver_comes_back(folder: Path) -> None:
    driver = scenario(folder, {"1": CRASH, "*": FINISH})
    answer = tidemark(folder, "run", "job.yaml", "--json", driver=driver)
    assert (answer.code, answer.json) == (0, SUMMARY)
    assert driver.attempts() == [1, 2]
    assert "SIGKILL" in answer.err


def test_ctrl_c_stops_at_the_boundary(folder: Path) -> None:
    driver = scenario(folder, {"*": SERVE})
    process = start_command(folder, driver, "run", "job.yaml", "--json")
    wait_until(lambda: driver.diary("serving"))
    process.send_signal(signal.SIGINT)
    answer = finish(process)
    assert (answer.code, answer.json["state"]) == (0, "STOPPED")
    assert driver.diary("stopped")


def test_ctrl_c_twice_kills(folder: Path) -> None:
    driver = scenario(folder, {"*": [["started"], ["epoch", 0], ["ignore_everything"]]})
    process = start_command(folder, driver, "run", "job.yaml", "--json")
    pid = wait_until(lambda: driver.diary("serving"))[0]["pid"]
    process.send_signal(signal.SIGINT)
    assert process.stderr
    wait_until(lambda: "stopping at the end" in str(process.stderr and process.stderr.readline()))
    process.send_signal(signal.SIGINT)
    answer = finish(process)
    assert answer.code == 1
    assert answer.json["epochs"] == 1
    assert answer.json["watermark"] == "2026-01-01T00:01:00Z"
    assert answer.json["error"]["code"] == "engine_failed"
    assert not is_alive(pid)


def test_kill_9_of_the_supervisor_reaches_the_driver_and_frees_the_job(folder: Path) -> None:
    driver = scenario(folder, {"1": SERVE, "*": FINISH})
    process = start_command(folder, driver, "run", "job.yaml")
    wait_until(lambda: driver.diary("serving"))
    process.kill()
    finish(process)
    wait_until(lambda: driver.diary("orphaned"), deadline=5)
    assert tidemark(folder, "run", "job.yaml", driver=driver).code == 0
    assert driver.attempts() == [1, 2]


def test_a_driver_that_outlived_its_supervisor_is_killed_by_the_next(folder: Path) -> None:
    driver = scenario(folder, {"1": [["started"], ["child"], ["ignore_everything"]], "*": FINISH})
    process = start_command(folder, driver, "run", "job.yaml")
    pid = wait_until(lambda: driver.diary("serving"))[0]["pid"]
    process.kill()
    finish(process)
    assert is_alive(pid)
    assert tidemark(folder, "run", "job.yaml", driver=driver).code == 0
    assert not is_alive(pid)
    assert not is_alive(driver.diary("child")[0]["child"])


def test_a_second_run_of_the_same_job_is_refused(folder: Path) -> None:
    driver = scenario(folder, {"*": SERVE})
    process = start_command(folder, driver, "run", "job.yaml")
    wait_until(lambda: driver.diary("serving"))
    refused = tidemark(folder, "run", "job.yaml", "--fresh", "--json", driver=driver)
    assert refused.code == 2
    assert refused.json["error"]["code"] == "already_running"
    assert str(process.pid) in refused.json["error"]["message"]
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 0
    assert len(driver.attempts()) == 1


def lineage(driver: Scenario) -> list[str]:
    return [entry["spec"]["lineage"] for entry in driver.diary("start")]


def test_fresh_starts_over_and_a_plain_run_goes_on(folder: Path) -> None:
    driver = scenario(folder, {"*": FINISH})
    kept = folder / ".tidemark/jobs/shop/queries/per_min"
    assert tidemark(folder, "run", "job.yaml", driver=driver).code == 0
    kept.mkdir()
    assert tidemark(folder, "run", "job.yaml", driver=driver).code == 0
    assert kept.exists()
    assert tidemark(folder, "run", "job.yaml", "--fresh", driver=driver).code == 0
    assert not kept.exists()
    first, second, third = lineage(driver)
    assert first == second != third
    assert driver.attempts() == [1, 2, 3]


def test_another_shape_of_state_needs_fresh(folder: Path) -> None:
    driver = scenario(folder, {"*": FINISH})
    assert tidemark(folder, "run", "job.yaml", driver=driver).code == 0
    query = driver.diary("start")[0]["spec"]["plan"]["queries"][0]["id"]
    state = folder / ".tidemark/jobs/shop/queries" / query
    state.mkdir()
    (state / "offsets").touch()
    (folder / "job.yaml").write_text(JOB.replace("tumbling: 1m", "tumbling: 2m"))
    refused = tidemark(folder, "run", "job.yaml", "--json", driver=driver)
    assert (refused.code, refused.json["error"]["code"]) == (2, "not_fresh")
    assert "per_min" in refused.json["error"]["message"]
    assert "--fresh" in refused.json["error"]["hint"]
    assert tidemark(folder, "run", "job.yaml", "--fresh", driver=driver).code == 0


def test_an_invalid_definition(folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB.replace("tumbling: 1m", "tumbling: soon"))
    answer = tidemark(folder, "run", "job.yaml", "--json")
    assert answer.code == 2
    assert answer.json["state"] == "FAILED"
    assert answer.json["error"]["code"] == "invalid_definition"
    assert "job.yaml:9:" in answer.err
    assert not (folder / ".tidemark").exists()


def test_settings_reach_the_driver(folder: Path) -> None:
    (folder / "tidemark.toml").write_text('driver_memory = "3g"\nmaster = "local[1]"\nlog_level = "warning"\n')
    driver = scenario(folder, {"*": FINISH})
    answer = tidemark(folder, "run", "job.yaml", driver=driver, TIDEMARK_MASTER="local[3]", TIDEMARK_HOME="h")
    start = driver.diary("start")[0]
    assert (start["spec"]["driver_memory"], start["spec"]["master"]) == ("3g", "local[3]")
    assert start["environment"]["TIDEMARK_LOG_LEVEL"] == "warning"
    assert Path(start["spec"]["state"]) == folder / "h/jobs/shop/queries"
    assert answer.err == ""


def test_the_driver_writes_to_its_log(folder: Path) -> None:
    tidemark(folder, "run", "job.yaml", driver=scenario(folder, {"*": [["log", "a word"], *FINISH]}))
    assert "a word\n" in (folder / ".tidemark/jobs/shop/driver.log").read_text()


def test_a_driver_that_cannot_be_started(folder: Path) -> None:
    answer = tidemark(folder, "run", "job.yaml", "--json", FAKE_DRIVER=json.dumps(["/nowhere/python"]))
    assert (answer.code, answer.json["error"]["code"]) == (1, "environment")
    assert "Traceback" not in answer.err


def test_a_reader_that_goes_away_ends_the_run_without_a_trace(folder: Path) -> None:
    driver = scenario(folder, {"*": [["started"], *(["console", "x" * 1000] for _ in range(200)), *SERVE]})
    process = start_command(folder, driver, "run", "job.yaml")
    assert process.stdout
    assert process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert process.wait(30) == 1
    assert process.stderr
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert not is_alive(driver.diary("start")[0]["pid"])


def test_every_part_of_the_plan_is_in_the_summary_also_when_nothing_was_read(folder: Path) -> None:
    empty: list[Step] = [["started"], ["ended_empty"]]
    answer = tidemark(folder, "run", "job.yaml", "--json", driver=scenario(folder, {"*": empty}))
    assert answer.json["sources"] == {"orders": {"in": 0, "accepted": 0, "errors": 0}}
    assert answer.json["operators"]["per_min"] == {
        "rows_in": 0, "rows_out": 0, "late": 0, "filtered": 0, "duplicates": 0,
    }  # fmt: skip
    assert answer.json["sinks"] == {"out": {"rows": 0}, "late": {"rows": 0}, "bad": {"rows": 0}}


@pytest.mark.parametrize(
    ("mode", "options", "says"),
    [
        ("microbatch", ["--until-drained"], "source g: this generator never ends"),
        ("backfill", [], "`mode: backfill` ends, and `g` never does"),
    ],
)
def test_a_generator_that_never_ends_cannot_be_drained(folder: Path, mode: str, options: list[str], says: str) -> None:
    endless = "generator: {rate: 5, columns: {store: \"'s'\"}}"
    parts = f"sources: {{g: {{{endless}}}}}\nsinks: {{o: {{input: g, console: {{}}}}}}\n"
    (folder / "job.yaml").write_text(f"tidemark: 1\nname: shop\nmode: {mode}\n{parts}")
    driver = scenario(folder, {"*": FINISH})
    answer = tidemark(folder, "run", "job.yaml", *options, driver=driver)
    assert answer.code == 2
    assert says in answer.err
    assert driver.diary("start") == []
