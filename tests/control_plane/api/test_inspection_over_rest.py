"""The calls that look closer: watermark, plan, history, log, keyed state, metrics, health, audit."""

from __future__ import annotations

from pathlib import Path

from control_plane.serving import SERVE, Server, running_server
from prometheus_client.parser import text_string_to_metric_families
from support.waiting import wait_until


def test_the_watermark_is_explained_down_to_the_partition(server: Server) -> None:
    job_id = server.submit("explained")
    server.wait_for_epoch(job_id)
    answer = server.get(f"/jobs/{job_id}/watermark")
    assert answer["watermark"] == "2026-01-01T00:00:10Z"
    (chain,) = answer["queries"]
    assert (chain["query"], chain["source"], chain["partition"]) == ("per_min", "orders", 0)
    assert chain["release"]["event_after"] == "2026-01-01T00:00:15Z"
    assert chain["release"]["idle_in_seconds"] == 20.0
    (window,) = chain["waiting"]
    assert (window["window_end"], window["open"]) == ("2026-01-01T00:01:00Z", 3)
    assert window["needs_event_at"] == "2026-01-01T00:01:05Z"


def test_a_job_whose_driver_has_said_nothing_yet_has_an_explanation_too(server: Server) -> None:
    job_id = server.submit("speechless", start=False)
    (chain,) = server.get(f"/jobs/{job_id}/watermark")["queries"]
    assert "not said anything" in chain["words"]


def test_the_plan_shows_references_and_not_their_values(home: Path) -> None:
    with running_server(home, PLACE=str(home / "secret-place.db")) as server:
        sink = "sqlite: {path: $PLACE, table: t, key: [store, window_start]}"
        answer = server.http.post(
            "/jobs", content=_job(sink), headers={"Content-Type": "application/yaml"}, params={"start": False}
        )
        plan = server.get(f"/jobs/{answer.json()['job_id']}/plan")
        assert plan["queries"][0]["sinks"][0]["options"]["path"] == "$PLACE"


def _job(sink: str) -> str:
    from control_plane.serving import job_text

    return job_text("hidden", sink)


def test_history_tells_cause_and_duration_and_comes_in_pages(server: Server) -> None:
    job_id = server.submit("historic")
    server.wait_for(job_id, "RUNNING")
    page = server.get(f"/jobs/{job_id}/events", limit=2)
    newest, older = page["events"]
    assert (newest["from_state"], newest["to_state"]) == ("STARTING", "RUNNING")
    assert newest["duration_ms"] > 0
    assert older["to_state"] == "STARTING"
    (first,) = server.get(f"/jobs/{job_id}/events", limit=2, cursor=page["next_cursor"])["events"]
    assert (first["kind"], first["cause"]) == ("created", "submitted")


def test_warnings_of_the_driver_are_in_the_history(home: Path) -> None:
    with running_server(home, {"*": {"*": [["warning", "3 late events"], *SERVE]}}) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        assert server.causes(job_id, "warning") == ["orders: 3 late events"]


def test_the_end_of_the_log_is_shown(home: Path) -> None:
    lines = [["log", f"line {number}"] for number in range(50)]
    with running_server(home, {"*": {"*": [*lines, *SERVE]}}, LARGEST_LOG="200") as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        wait_until(lambda: server.get(f"/jobs/{job_id}/logs", tail=1)["lines"] == ["line 49"])
        assert server.get(f"/jobs/{job_id}/logs", tail=3)["lines"] == ["line 47", "line 48", "line 49"]
        assert server.http.get(f"/jobs/{job_id}/logs", params={"tail": 0}).status_code == 422


def test_keyed_state_is_answered_by_the_driver(server: Server) -> None:
    job_id = server.submit("keyed")
    assert server.http.get(f"/jobs/{job_id}/state/nothing", params={"key": "a"}).status_code == 404
    server.wait_for_epoch(job_id)
    answer = server.get(f"/jobs/{job_id}/state/per_min", key="berlin")
    assert answer == {
        "operator": "per_min",
        "key": {"store": "berlin"},
        "query": "per_min",
        "epoch": 7,
        "age_ms": 12,
        "entries": [{"window_start": "2026-01-01T00:00:00Z", "values": {"orders": 3}}],
    }
    assert server.http.get(f"/jobs/{job_id}/state/per_min").status_code == 422
    server.http.post(f"/jobs/{job_id}/stop")
    server.wait_for(job_id, "STOPPED")
    assert server.http.get(f"/jobs/{job_id}/state/per_min", params={"key": "a"}).status_code == 409


def test_metrics_hold_what_the_driver_said(server: Server) -> None:
    job_id = server.submit("measured")
    server.wait_for_epoch(job_id)
    answer = server.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    values = {
        (sample.name, *sorted((name, value) for name, value in sample.labels.items() if name != "job")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.labels.get("job") == "measured"
    }
    assert values["tidemark_job_state", ("state", "RUNNING")] == 1
    assert values["tidemark_job_state", ("state", "FAILED")] == 0
    assert values["tidemark_events_total", ("outcome", "accepted"), ("source", "orders")] == 79
    assert values["tidemark_events_total", ("outcome", "error"), ("source", "orders")] == 1
    assert values["tidemark_lag_events", ("partition", "1"), ("source", "orders")] == 7
    assert values["tidemark_epoch_duration_seconds_count",] == 1
    assert values["tidemark_window_firing_latency_seconds_count", ("operator", "per_min")] == 1
    assert values["tidemark_sink_commit_seconds_sum", ("sink", "out")] == 0.005
    assert values["tidemark_state_bytes", ("operator", "per_min")] == 300
    assert values["tidemark_watermark_lag_seconds", ("partition", "0"), ("source", "orders")] > 0


def test_the_server_is_well_and_ready(server: Server) -> None:
    assert server.get("/healthz") == {"status": "ok"}
    assert server.get("/readyz") == {"status": "ok"}


def test_every_change_is_in_the_audit_log(server: Server) -> None:
    job_id = server.submit("audited")
    server.wait_for(job_id, "RUNNING")
    server.http.post(f"/jobs/{job_id}/savepoint")
    server.http.patch(f"/jobs/{job_id}", json={"parallelism": 3})
    server.wait_for(job_id, "RUNNING")
    server.http.post(f"/jobs/{job_id}/stop")
    server.wait_for(job_id, "STOPPED")
    server.http.delete(f"/jobs/{job_id}")
    server.wait_for(job_id, "CANCELED")
    server.http.delete(f"/jobs/{job_id}", params={"purge": True})
    entries = server.get("/audit", limit=50)["entries"]
    done = [entry["action"] for entry in reversed(entries) if entry["target"] == job_id]
    assert done == ["submit", "savepoint", "rescale", "stop", "cancel", "purge"]
    assert {entry["actor"] for entry in entries} == {"local"}
