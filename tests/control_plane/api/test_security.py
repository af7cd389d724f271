"""Who may do what: every route and role, hosts and origins, paths, secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli.driving import tidemark
from control_plane.serving import RUNS, YAML, Server, Step, job_text, running_server
from support.waiting import wait_until

from tidemark.control_plane.api.routes import ROUTES, Route
from tidemark.control_plane.server import STORE, check_exposure, is_loopback
from tidemark.control_plane.store.access import Role, create_token
from tidemark.control_plane.store.database import Database
from tidemark.errors import UsageError
from tidemark.stored_secrets import StoredSecrets

SECRET = "hunter2-planted-secret"


@dataclass(frozen=True)
class Guarded:
    server: Server
    tokens: dict[str, str]

    def call(self, route: Route, who: str) -> int:
        path = re.sub(r"\{(attempt|command_id)\}", "1", route.path)
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}
        return self.server.http.request(route.method, re.sub(r"\{\w+\}", "x", path), headers=headers).status_code


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    database = Database(folder / ".tidemark" / STORE)
    now = datetime.now(UTC)
    with database.writing() as connection:
        tokens = {role.value: create_token(connection, role, role, now, None)[1] for role in Role}
        tokens["expired"] = create_token(connection, "old", Role.ADMIN, now - timedelta(days=2), timedelta(days=1))[1]
        kept = json.dumps([list(row) for row in connection.exec_driver_sql("SELECT * FROM tokens")])
    database.close()
    assert not [token for token in tokens.values() if token in kept]
    tokens["wrong"] = tokens["admin"][:-1] + ("A" if tokens["admin"][-1] != "A" else "B")
    with running_server(folder) as server:
        yield Guarded(server, tokens)


@pytest.mark.parametrize("who", ["nobody", "wrong", "expired", *Role])
@pytest.mark.parametrize("route", ROUTES, ids=[f"{route.method} {route.path}" for route in ROUTES])
def test_a_route_lets_in_whom_it_should(guarded: Guarded, route: Route, who: str) -> None:
    status = guarded.call(route, who)
    if route.internal:
        assert status in (403, 422)
    elif route.role is None:
        assert status == 200
    elif who in ("nobody", "wrong", "expired"):
        assert status == 401
    elif not Role(who).includes(route.role):
        assert status == 403
    else:
        assert status not in (401, 403)


def test_every_route_that_changes_something_needs_more_than_a_viewer() -> None:
    for route in ROUTES:
        if not route.internal and route.method != "GET":
            assert route.role in (Role.OPERATOR, Role.ADMIN), route.path
    assert [route.path for route in ROUTES if route.role is None and not route.internal] == ["/healthz", "/readyz"]


def test_the_audit_log_names_the_token(guarded: Guarded) -> None:
    headers = {"Authorization": f"Bearer {guarded.tokens['operator']}", **YAML}
    guarded.server.http.post("/jobs", content=job_text("mine"), headers=headers, params={"start": False})
    admin = {"Authorization": f"Bearer {guarded.tokens['admin']}"}
    entry = guarded.server.http.get("/audit", headers=admin).json()["entries"][0]
    assert (entry["actor"], entry["action"]) == ("operator", "submit")


def test_a_server_without_tokens_stays_on_loopback(tmp_path: Path) -> None:
    database = Database(tmp_path / STORE)
    check_exposure("127.0.0.1", database)
    for host in ("0.0.0.0", "10.0.0.1", "::", "example.org"):
        with pytest.raises(UsageError, match="can be reached from other machines"):
            check_exposure(host, database)
    with database.writing() as connection:
        create_token(connection, "a", Role.VIEWER, datetime.now(UTC), None)
    check_exposure("0.0.0.0", database)
    database.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_known_by_all_its_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "127.0.0.1:1"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:9", "Origin": "http://localhost:9"}, 200),
        ({"Host": "localhost:9", "Origin": "http://localhost:8"}, 403),
    ],
)
def test_hosts_and_origins_of_others_are_refused(server: Server, headers: dict[str, str], status: int) -> None:
    assert server.http.get("/jobs", headers=headers).status_code == status


def test_a_path_outside_of_the_allowed_roots_is_refused_over_rest(server: Server) -> None:
    sink = "sqlite: {path: /etc/out.db, table: t, key: [store, window_start]}"
    answer = server.http.post("/jobs", content=job_text("out", sink), headers=YAML)
    assert answer.status_code == 422
    (found,) = answer.json()["error"]["diagnostics"]
    assert (found["code"], found["path"]) == ("path_not_allowed", "sinks.out.sqlite.path")


@pytest.mark.parametrize("place", ["environment", "home"])
def test_a_secret_is_found_nowhere(home: Path, place: str) -> None:
    """Planted, used by the job, shouted by its driver into log and failure."""
    steps: list[Step] = [
        ["show_secret", "WORD"],
        ["started"],
        ["warning", "w"],
        ["fail_with_secret", "WORD"],
        ["exit", 1],
    ]
    stored = StoredSecrets.of(home / ".tidemark")
    environment = {"WORD": SECRET} if place == "environment" else {}
    if place == "home":
        stored.set("WORD", SECRET, datetime.now(UTC))
    with running_server(home, {"*": {"*": steps}}, None, **environment) as server:
        sink = "sqlite: {path: out.db, table: $WORD, key: [store, window_start]}"
        answer = server.http.post("/jobs", content=job_text("secretive", sink), headers=YAML)
        job_id = answer.json()["job_id"]
        server.wait_for(job_id, "FAILED")
        wait_until(lambda: server.get(f"/jobs/{job_id}/logs")["lines"])
        shown = [answer.text, server.http.get("/metrics").text]
        for path in ("", "/plan", "/events", "/logs", "/watermark", "/savepoints"):
            shown.append(server.http.get(f"/jobs/{job_id}{path}").text)
        kept = [path for path in (home / ".tidemark").rglob("*") if path.is_file() and path != stored.file]
        assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
        assert not [text for text in shown if SECRET in text]
        assert SECRET not in (home / "server.err").read_text()
        assert "connecting to $WORD now" in shown[5]
        assert "cannot reach $WORD" in server.job(job_id)["last_error"]["message"]


def test_a_value_that_was_replaced_is_still_masked(home: Path) -> None:
    """The driver that runs has the one of its start."""
    stored = StoredSecrets.of(home / ".tidemark")
    steps: list[Step] = [
        ["started"],
        ["epoch", 1],
        ["sleep", 1.0],
        ["fail_with", f"cannot reach {SECRET}"],
        ["exit", 1],
    ]
    with running_server(home, {"*": {"*": steps}}) as server:
        stored.set("WORD", SECRET, datetime.now(UTC))
        sink = "sqlite: {path: out.db, table: $WORD, key: [store, window_start]}"
        job_id = server.http.post("/jobs", content=job_text("older", sink), headers=YAML).json()["job_id"]
        server.wait_for_epoch(job_id)
        stored.set("WORD", "another one", datetime.now(UTC))
        assert server.wait_for(job_id, "FAILED")["last_error"]["message"] == "cannot reach $WORD"


def test_secrets_that_others_may_read_are_refused(home: Path) -> None:
    """By a server that starts, and for a job that would start."""
    stored = StoredSecrets.of(home / ".tidemark")
    stored.set("WORD", SECRET, datetime.now(UTC))
    with running_server(home) as server:
        stored.file.chmod(0o644)
        answer = server.http.post("/jobs", content=job_text(), headers=YAML)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "secrets_exposed")
        assert SECRET not in answer.text
    refused = tidemark(home, "server", "--port", "0")
    assert (refused.code, "error[secrets_exposed]: others may read" in refused.err) == (2, True)


@pytest.mark.parametrize("place", ["environment", "home"])
def test_no_secret_is_in_a_process_list(home: Path, place: str) -> None:
    environment = {"WORD": SECRET} if place == "environment" else {}
    if place == "home":
        StoredSecrets.of(home / ".tidemark").set("WORD", SECRET, datetime.now(UTC))
    with running_server(home, RUNS, None, **environment) as server:
        sink = "sqlite: {path: out.db, table: $WORD, key: [store, window_start]}"
        answer = server.http.post("/jobs", content=job_text("listed", sink), headers=YAML)
        server.wait_for(answer.json()["job_id"], "RUNNING")
        lines = b"".join(_content(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
        assert b"scripted_driver" in lines
        assert SECRET.encode() not in lines
        if place == "home":
            environments = b"".join(_content(path) for path in Path("/proc").glob("[0-9]*/environ"))
            assert b"TIDEMARK_LOG_LEVEL" in environments
            assert SECRET.encode() not in environments


def _content(path: Path) -> bytes:
    """Nothing of a process that has ended, or is another user's."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def test_what_the_server_keeps_is_private_and_what_jobs_write_is_not(home: Path) -> None:
    with running_server(home) as server:
        job_id = server.submit()
        server.wait_for(job_id, "RUNNING")
        for name in ("control.db", f"jobs/{job_id}/run.json", "server.json"):
            assert (home / ".tidemark" / name).stat().st_mode & 0o077 == 0, name
        assert server.diary("start")[0]["umask"] & 0o044 == 0
        assert server.diary("start")[0]["spec"]["control"]["token"] not in (home / ".tidemark/server.json").read_text()
