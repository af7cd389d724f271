"""Paths of jobs that come over REST stay below the allowed roots, whatever form they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from control_plane.serving import job_text

from tidemark.compiler.compile import compile_job
from tidemark.control_plane.jobs.confinement import PATH_OPTION, refused_paths

INSIDE = ("out.db", "sub/out.db", "./out.db", "$NAME/out.db", "file:{root}/out.db", "{root}/out.db", "data-*/x?.db")
OUTSIDE = (
    "/etc/out.db",
    "../out.db",
    "a/../../out.db",
    "a/../out.db",
    "~/out.db",
    "file:///etc/out.db",
    "link/out.db",
    "link/*.db",
    "$OUTSIDE",
    "{root}-beside/out.db",
    "/*/out.db",
)
ENVIRONMENT = {"OUTSIDE": "/etc/very-secret.db", "NAME": "inner"}


def refused(path: str, root: Path) -> list[str]:
    sink = f'sqlite: {{path: "{path.format(root=root)}", table: t, key: [store, window_start]}}'
    plan = compile_job(job_text("x", sink)).plan
    found = refused_paths(plan, root, [root], ENVIRONMENT)
    assert not [each for each in found if "very-secret" in each.message]
    return [each.path for each in found]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "link").symlink_to("/etc")
    return folder


@pytest.mark.parametrize("path", INSIDE)
def test_inside(root: Path, path: str) -> None:
    assert refused(path, root) == []


@pytest.mark.parametrize("path", OUTSIDE)
def test_outside(root: Path, path: str) -> None:
    assert refused(path, root) == ["sinks.out.sqlite.path"]


def test_every_root_counts(root: Path) -> None:
    plan = compile_job(job_text("x", "sqlite: {path: /srv/out.db, table: t, key: [store, window_start]}")).plan
    assert refused_paths(plan, root, [root, Path("/srv")], {}) == []


@pytest.mark.parametrize("name", ["path", "ca_file", "key.location", "log_directory", "security.ca", "security.key"])
def test_options_that_name_a_file_are_known_by_their_names(name: str) -> None:
    assert PATH_OPTION.search(name)


@pytest.mark.parametrize("name", ["table", "format", "profile", "paths_per_epoch", "key", "security.password"])
def test_other_options_are_not(name: str) -> None:
    assert not PATH_OPTION.search(name)


def test_the_files_of_a_brokers_security_stay_inside_too(root: Path) -> None:
    sink = "kafka: {topic: t, servers: h:1, security: {protocol: ssl, ca: /etc/ca.pem}}"
    found = refused_paths(compile_job(job_text("x", sink)).plan, root, [root], {})
    assert [each.path for each in found] == ["sinks.out.kafka.security.ca"]
