"""Secrets in a file of their owner, and what `$NAME` takes."""

from __future__ import annotations

import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidemark.data_plane.secrets import resolve
from tidemark.errors import NotFound, SecretsExposed, SettingMissing, UsageError
from tidemark.stored_secrets import StoredSecrets, variables

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def stored(tmp_path: Path) -> StoredSecrets:
    return StoredSecrets.of(tmp_path / "home")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_set_is_there_until_it_is_deleted(stored: StoredSecrets) -> None:
    assert stored.values() == {}
    stored.set("PG", "pg://u:pass@host", NOW)
    stored.set("PG", "pg://u:word@host", NOW)
    stored.set("KAFKA_2", "broker:9092", NOW)
    assert stored.values() == {"PG": "pg://u:word@host", "KAFKA_2": "broker:9092"}
    assert stored.all()["PG"].set_at == NOW
    stored.delete("PG")
    assert stored.values() == {"KAFKA_2": "broker:9092"}
    with pytest.raises(NotFound, match="no secret 'PG'"):
        stored.delete("PG")


def test_the_file_is_for_its_owner_alone(stored: StoredSecrets) -> None:
    stored.set("PG", "pg://u:pass@host", NOW)
    assert (mode(stored.file), mode(stored.file.parent)) == (0o600, 0o700)
    assert [path.name for path in stored.file.parent.iterdir() if path.name not in ("secrets.json", "lock")] == []


@pytest.mark.parametrize(("which", "bits"), [("file", 0o640), ("file", 0o604), ("folder", 0o750), ("folder", 0o701)])
def test_a_file_that_others_may_read_is_refused(stored: StoredSecrets, which: str, bits: int) -> None:
    stored.set("PG", "pg://u:pass@host", NOW)
    path = stored.file if which == "file" else stored.file.parent
    path.chmod(bits)
    with pytest.raises(SecretsExposed, match="others may read") as refused:
        stored.values()
    assert "chmod" in (refused.value.hint or "")
    with pytest.raises(SecretsExposed):
        stored.set("OTHER", "value", NOW)


@pytest.mark.parametrize("name", ["pg", "1PG", "P-G", "", "PG ", "$PG"])
def test_a_name_that_no_job_can_write_is_refused(stored: StoredSecrets, name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a secret"):
        stored.set(name, "value", NOW)


@pytest.mark.parametrize("value", ["", "abc", "two\nlines"])
def test_a_value_that_could_not_be_masked_is_refused(stored: StoredSecrets, value: str) -> None:
    with pytest.raises(UsageError, match="could not be masked"):
        stored.set("PG", value, NOW)


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"PG": "value"}', '{"PG": {}}', '{"PG": {"value": "v", "set_at": "x"}}']
)
def test_a_damaged_file_is_named(stored: StoredSecrets, damage: str) -> None:
    stored.set("PG", "value", NOW)
    stored.file.write_text(damage)
    with pytest.raises(UsageError, match="is damaged"):
        stored.values()


def test_changes_at_the_same_time_are_all_kept(stored: StoredSecrets) -> None:
    names = [f"NAME_{number}" for number in range(20)]
    threads = [threading.Thread(target=stored.set, args=(name, "value", NOW)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(stored.values()) == sorted(names)


def test_a_variable_goes_before_a_stored_secret() -> None:
    found = variables({"BOTH": "of the environment"}, {"BOTH": "stored", "ONE": "stored"})
    options = {"url": "$BOTH and $ONE", "more": ["$ONE", 1]}
    assert resolve(options, found, "out") == {"url": "of the environment and stored", "more": ["stored", 1]}


def test_what_is_nowhere_is_named() -> None:
    with pytest.raises(SettingMissing, match="neither an environment variable nor a stored secret NOWHERE"):
        resolve("$NOWHERE", {}, "out")
