"""Clients that ask too often."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from control_plane.serving import RUNS, running_server

from tidemark.control_plane.api.guard import UNLIMITED
from tidemark.control_plane.api.limits import Limiter
from tidemark.control_plane.api.routes import ROUTES
from tidemark.control_plane.server import STORE
from tidemark.control_plane.store.access import Role, create_token
from tidemark.control_plane.store.database import Database


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def passed(limiter: Limiter, requests: int, token: str | None = None, address: str = "::1") -> int:
    return sum(limiter.wait(token, address) == 0 for _ in range(requests))


def test_twice_the_rate_may_come_at_once_and_then_the_rate(clock: Clock) -> None:
    limiter = Limiter(10, clock)
    assert passed(limiter, 50) == 20
    clock.now += 1.0
    assert passed(limiter, 50) == 10
    clock.now += 60.0
    assert passed(limiter, 50) == 20


def test_a_client_is_told_when_to_come_again(clock: Clock) -> None:
    limiter = Limiter(10, clock)
    passed(limiter, 20)
    wait = limiter.wait(None, "::1")
    assert wait == pytest.approx(0.1)
    clock.now += wait + 1e-9
    assert limiter.wait(None, "::1") == 0


def test_clients_do_not_share_a_bucket(clock: Clock) -> None:
    limiter = Limiter(10, clock)
    limiter.verified("good", "a1")
    limiter.verified("other", "b2")
    assert passed(limiter, 50, address="10.0.0.1") == 20
    assert passed(limiter, 50, address="10.0.0.2") == 20
    assert passed(limiter, 50, token="good", address="10.0.0.1") == 20
    assert passed(limiter, 50, token="other", address="10.0.0.1") == 20


def test_a_token_that_nobody_verified_is_no_client_of_its_own(clock: Clock) -> None:
    limiter = Limiter(10, clock)
    assert sum(limiter.wait(f"guess {number}", "10.0.0.1") == 0 for number in range(50)) == 20


def test_only_so_many_clients_are_remembered(clock: Clock) -> None:
    limiter = Limiter(1, clock, most=100)
    assert passed(limiter, 5, address="10.0.0.1") == 2
    for number in range(99):
        limiter.wait(None, f"10.1.0.{number}")
    assert passed(limiter, 5, address="10.0.0.1") == 0
    for number in range(1000):
        limiter.wait(None, f"10.2.0.{number}")
    assert len(limiter._buckets) == 100
    assert passed(limiter, 5, address="10.0.0.1") == 2


def test_a_server_refuses_who_asks_too_often(home: Path) -> None:
    database = Database(home / ".tidemark" / STORE)
    with database.writing() as connection:
        _, token = create_token(connection, "reader", Role.VIEWER, datetime.now(UTC), None)
    database.close()
    with running_server(home, RUNS, None, TIDEMARK_REQUESTS_PER_SECOND="1") as server:
        mine = {"Authorization": f"Bearer {token}"}
        assert [server.http.get("/jobs").status_code for _ in range(2)] == [401, 401]
        refused = server.http.get("/jobs")
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
        assert int(refused.headers["Retry-After"]) == 1
        assert {server.http.get(path).status_code for path in UNLIMITED for _ in range(5)} == {200}
        beat = "/internal/jobs/x/attempts/1/heartbeat"
        assert 429 not in [server.http.post(beat, json={}).status_code for _ in range(5)]
        statuses = [server.http.get("/jobs", headers=mine).status_code for _ in range(20)]
        assert 429 in statuses


def test_every_call_says_that_it_can_be_refused_for_this(home: Path) -> None:
    with running_server(home) as server:
        described = server.get("/openapi.json")["paths"]
    for route in ROUTES:
        if not route.internal:
            answers = described[route.path][route.method.lower()]["responses"]
            assert ("429" in answers) == (route.path not in UNLIMITED), route.path
            assert route.path in UNLIMITED or "Retry-After" in answers["429"]["headers"]
