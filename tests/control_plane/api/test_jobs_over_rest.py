"""The calls about jobs: what they answer, what they refuse, and how."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from control_plane.serving import YAML, Server, Step, job_text, running_server
from support.recorded_epochs import recorded
from support.waiting import wait_until

from tidemark.compiler.compile import compile_job

WINDOW = "window: {tumbling: 1m}"


def post(server: Server, text: str, **query: Any) -> httpx.Response:
    return server.http.post("/jobs", content=text, headers=YAML, params=query)


def put(server: Server, name: str, text: str, **query: Any) -> httpx.Response:
    return server.http.put(f"/jobs/{name}", content=text, headers=YAML, params=query)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_job_is_made_with_its_place_and_its_warnings(server: Server) -> None:
    text = "\n".join(line for line in job_text("made").splitlines() if "late" not in line)
    answer = post(server, text, start=False)
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["Location"] == f"/jobs/{made['job_id']}"
    assert [warning["code"] for warning in made["warnings"]] == ["port_not_connected"]
    assert made["state"] == "CREATED"
    assert server.job("made")["job_id"] == made["job_id"]


def test_json_says_the_same_as_yaml(server: Server) -> None:
    body = compile_job(job_text("as-json")).definition.to_dict()
    answer = server.http.post("/jobs", json=body, params={"start": False})
    assert answer.status_code == 201
    assert answer.json()["sources"].keys() == {"orders"}


def test_a_wrong_definition_is_refused_with_every_problem_and_its_place(server: Server) -> None:
    text = job_text("wrong").replace("amount > 0", "amont > 0").replace("tumbling: 1m", "tumbling: soon")
    answer = post(server, text)
    assert code(answer) == (422, "invalid_definition")
    found = answer.json()["error"]["diagnostics"]
    assert [each["code"] for each in found] == ["unknown_column", "bad_duration"]
    assert all(each["line"] and each["column"] and each["hint"] for each in found)


def test_a_dry_run_shows_the_plan_and_makes_nothing(server: Server) -> None:
    answer = post(server, job_text("dry"), dry_run=True)
    assert answer.status_code == 200
    assert answer.json()["plan"]["queries"][0]["id"] == "per_min"
    assert server.http.get("/jobs/dry").status_code == 404
    assert code(post(server, "tidemark: 1", dry_run=True)) == (422, "invalid_definition")


def test_the_name_of_a_live_job_is_taken(server: Server) -> None:
    job_id = server.submit("taken", start=False)
    assert code(post(server, job_text("taken"))) == (409, "conflict")
    server.http.delete(f"/jobs/{job_id}")
    server.wait_for(job_id, "CANCELED")
    again = server.submit("taken", start=False)
    assert again != job_id
    assert server.job("taken")["job_id"] == again


def test_the_same_key_makes_one_job(server: Server) -> None:
    headers = {**YAML, "Idempotency-Key": "k1"}
    first = server.http.post("/jobs", content=job_text("once"), headers=headers, params={"start": False})
    second = server.http.post("/jobs", content=job_text("once"), headers=headers, params={"start": False})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["job_id"] == second.json()["job_id"]
    assert second.headers["Location"] == first.headers["Location"]
    other = server.http.post("/jobs", content=job_text("twice"), headers=headers, params={"start": False})
    assert code(other) == (409, "conflict")


def test_pages_hold_every_job_once_the_newest_first(server: Server) -> None:
    made = [server.submit(f"page-{number}", start=False) for number in range(7)]
    found: list[str] = []
    cursor = None
    while True:
        page = server.get("/jobs", limit=3, **({"cursor": cursor} if cursor else {}))
        assert len(page["jobs"]) <= 3
        found += [job["job_id"] for job in page["jobs"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(found) == len(set(found))
    assert [job_id for job_id in found if job_id.startswith("page-")] == made[::-1]
    created = server.get("/jobs", state="CREATED", limit=500)["jobs"]
    assert {job["state"] for job in created} == {"CREATED"}


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 501}, {"limit": "x"}, {"state": "SLEEPING"}, {"cursor": "zzz"}, {"cursor": "WzFd"}],
)
def test_a_page_that_cannot_be_is_refused(server: Server, query: dict[str, Any]) -> None:
    answer = server.http.get("/jobs", params=query)
    assert code(answer) == (422, "bad_request")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/nothing", (404, "not_found")),
        ("GET", "/ui/", (404, "not_found")),
        ("POST", "/jobs/x", (405, "method_not_allowed")),
        ("GET", "/jobs/nobody", (404, "not_found")),
        ("POST", "/jobs/nobody/stop", (404, "not_found")),
        ("DELETE", "/jobs/nobody", (404, "not_found")),
        ("GET", "/jobs/nobody/watermark", (404, "not_found")),
        ("GET", "/savepoints/nothing", (404, "not_found")),
    ],
)
def test_every_refusal_has_the_same_shape(server: Server, method: str, path: str, expected: tuple[int, str]) -> None:
    answer = server.http.request(method, path)
    assert code(answer) == expected
    assert answer.json()["error"]["message"]
    assert "Traceback" not in answer.text


def test_bodies_are_json_or_yaml_and_of_limited_size_and_depth(server: Server) -> None:
    text = job_text("limits")
    assert code(server.http.post("/jobs", content=text, headers={"Content-Type": "text/plain"})) == (
        415,
        "unsupported_media",
    )
    assert code(server.http.post("/jobs", content=text)) == (415, "unsupported_media")
    large = b"#" * (1024 * 1024 + 1)
    assert code(server.http.post("/jobs", content=large, headers=YAML)) == (413, "too_large")
    chunked = server.http.post("/jobs", content=iter([large[:600_000], large[600_000:]]), headers=YAML)
    assert code(chunked) == (413, "too_large")
    deep = "x: " + "[" * 200 + "]" * 200
    assert post(server, deep).json()["error"]["diagnostics"][0]["code"] == "too_deep"
    assert code(server.http.post("/jobs", content=b"\xff\xfe", headers=YAML)) == (422, "bad_request")
    assert code(server.http.patch("/jobs/x", content="{", headers={"Content-Type": "application/json"}))[0] == 422


def test_a_rescale_stops_prepares_and_starts(server: Server) -> None:
    job_id = server.submit("wider")
    server.wait_for(job_id, "RUNNING")
    assert server.http.patch(f"/jobs/{job_id}", json={"parallelism": 0}).status_code == 422
    assert server.http.patch(f"/jobs/{job_id}", json={"parallelism": 4, "x": 1}).status_code == 422
    assert server.http.patch(f"/jobs/{job_id}", json={"parallelism": 4}).status_code == 202
    wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
    spec = server.diary("start", "wider")[1]["spec"]
    assert (spec["prepare"], spec["plan"]["parallelism"]) == ({"kind": "rescale", "parallelism": 4}, 4)
    assert server.job(job_id)["parallelism"] == 4
    server.http.post(f"/jobs/{job_id}/restart")
    wait_until(lambda: server.job(job_id)["attempt"] == 3 and server.job(job_id)["state"] == "RUNNING")
    assert server.diary("start", "wider")[2]["spec"]["prepare"] is None


def test_an_upgrade_keeps_what_has_the_same_shape(server: Server) -> None:
    job_id = server.submit("better")
    server.wait_for(job_id, "RUNNING")
    changed = job_text("better").replace("amount > 0", "amount > 10")
    dry = put(server, "better", changed, dry_run=True)
    assert dry.status_code == 200
    assert dry.json()["queries"][0]["verdict"] == "kept"
    assert server.job(job_id)["attempt"] == 1
    answer = put(server, "better", changed)
    assert answer.status_code == 202
    wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
    where = server.diary("start", "better")[1]["spec"]["plan"]["operators"]["valid"]["where"]["sql"]
    assert "10" in where
    first, second = server.diary("start", "better")
    assert first["spec"]["lineage"] == second["spec"]["lineage"]


def test_an_upgrade_that_would_lose_state_must_be_accepted(server: Server) -> None:
    job_id = server.submit("loses")
    server.wait_for(job_id, "RUNNING")
    renamed = job_text("loses").replace("per_min", "per_minute")
    refused = put(server, "loses", renamed)
    assert code(refused) == (409, "state_would_be_lost")
    assert "per_min" in refused.json()["error"]["message"]
    assert put(server, "loses", renamed, accept="per_min").status_code == 202
    wait_until(lambda: len(server.diary("start", "loses")) == 2)
    assert "per_minute" in server.diary("start", "loses")[1]["spec"]["plan"]["operators"]


def test_an_upgrade_to_a_new_aggregate_rebuilds_the_state(server: Server) -> None:
    job_id = server.submit("grown")
    server.wait_for(job_id, "RUNNING")
    changed = job_text("grown").replace("orders: count()", "orders: count(), total: sum(amount)")
    wider = changed.replace("name: grown", "name: grown\nparallelism: 7")
    assert code(put(server, "grown", wider)) == (409, "conflict")
    answer = put(server, "grown", changed)
    assert (answer.status_code, answer.json()["queries"][0]["verdict"]) == (202, "rebuilt")
    wait_until(lambda: server.job(job_id)["attempt"] == 2 and server.job(job_id)["state"] == "RUNNING")
    spec = server.diary("start", "grown")[1]["spec"]
    assert spec["prepare"] == {"kind": "rebuild", "queries": ["per_min"]}


def test_an_upgrade_says_how_many_events_are_read_again(server: Server) -> None:
    job_id = server.submit("counted", start=False)
    changed = job_text("counted").replace("orders: count()", "orders: count(), total: sum(amount)")
    (before,) = put(server, "counted", changed, dry_run=True).json()["queries"]
    assert (before["verdict"], before["events"]) == ("rebuilt", 0)
    query = server.folder / ".tidemark/jobs" / job_id / "queries/per_min"
    recorded(query, range(80, 150))
    (counted,) = put(server, "counted", changed, dry_run=True).json()["queries"]
    assert (counted["events"], counted["operators"][0]["events"]) == (600, 600)
    shutil.rmtree(query)
    recorded(query, range(140, 150))
    refused = put(server, "counted", changed)
    assert code(refused) == (409, "not_available")
    assert "do not reach back" in refused.json()["error"]["message"]


def test_an_upgrade_that_nothing_can_carry_out_is_refused(server: Server) -> None:
    server.submit("stuck", start=False)
    changed = job_text("stuck").replace("partitions: 2", "partitions: 3")
    refused = put(server, "stuck", changed, accept="per_min")
    assert code(refused) == (409, "not_available")
    assert "other sources" in refused.json()["error"]["message"]


def test_an_upgrade_keeps_the_name(server: Server) -> None:
    server.submit("kept-name", start=False)
    assert code(put(server, "kept-name", job_text("other-name"))) == (422, "bad_request")
    assert code(put(server, "nobody", job_text("nobody"))) == (404, "not_found")


def test_an_upgrade_that_cannot_start_goes_back_to_what_ran(home: Path) -> None:
    with running_server(home) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        refuse: list[Step] = [["failed", "sink_mismatch", "user", "never", "column x is missing"], ["exit", 1]]
        server.script({"*": {"2": refuse, "*": [["started"], ["epoch", 9], ["serve"]]}})
        put(server, "shop", job_text().replace("amount > 0", "amount > 10"))
        wait_until(lambda: server.job(job_id)["attempt"] == 3 and server.job(job_id)["state"] == "RUNNING")
        wheres = [entry["spec"]["plan"]["operators"]["valid"]["where"]["sql"] for entry in server.diary("start")]
        assert wheres[2] == wheres[0] != wheres[1]
        assert server.causes(job_id, "fallback") == ["upgrade failed: column x is missing"]


def test_the_number_of_jobs_is_limited(home: Path) -> None:
    with running_server(home, TIDEMARK_MAX_JOBS="1") as server:
        first = server.submit("first", start=False)
        assert code(post(server, job_text("second"))) == (409, "limit_reached")
        server.http.delete(f"/jobs/{first}")
        server.wait_for(first, "CANCELED")
        server.submit("second", start=False)


def test_openapi_knows_every_call(server: Server) -> None:
    described = server.get("/openapi.json")["paths"]
    assert described["/jobs"]["post"]["requestBody"]["content"].keys() == {"application/yaml", "application/json"}
    example = described["/jobs"]["post"]["requestBody"]["content"]["application/yaml"]["example"]
    assert compile_job(example).plan.job == "clicks-per-minute"
    for path, calls in described.items():
        for method, call in calls.items():
            shapes = [answer.get("content", {}) for status, answer in call["responses"].items() if status >= "400"]
            named = {json.dumps(shape["application/json"]["schema"]) for shape in shapes}
            assert len(named) == 1, (path, method)
