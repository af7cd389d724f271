"""Settings: variables over the file over the defaults, and words for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import UsageError
from tidemark.settings import load_settings


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "MASTER", "DRIVER_MEMORY", "LOG_LEVEL"):
        monkeypatch.delenv(f"TIDEMARK_{name}", raising=False)


def test_defaults(tmp_path: Path) -> None:
    settings = load_settings(tmp_path)
    assert settings.home == tmp_path / ".tidemark"
    assert (settings.master, settings.driver_memory, settings.log_level) == ("local[*,4]", "2g", "info")


def test_a_variable_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tidemark.toml").write_text('home = "data"\nmaster = "local[1]"\n')
    monkeypatch.setenv("TIDEMARK_MASTER", "local[2]")
    monkeypatch.setenv("TIDEMARK_REPORT_FD", "3")
    settings = load_settings(tmp_path)
    assert settings.master == "local[2]"
    assert settings.home == tmp_path / "data"


def test_home_may_be_absolute_or_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", "/srv/tide")
    assert load_settings(tmp_path).home == Path("/srv/tide")
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("TIDEMARK_HOME", "~/tide")
    assert load_settings(tmp_path).home == Path("/home/ada/tide")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('colour = "red"', "unknown setting 'colour'; there are home, master, driver_memory, log_level"),
        ('driver_memory = "lots"', "driver_memory"),
        ("master = 3", "master"),
        ('log_level = "loud"', "log_level"),
        ("home = ", "not valid TOML"),
        ('master = ""', "master"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "tidemark.toml").write_text(text)
    with pytest.raises(UsageError, match=words) as refused:
        load_settings(tmp_path)
    assert refused.value.hint


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "tidemark.toml").mkdir()
    with pytest.raises(UsageError, match=r"tidemark\.toml cannot be read"):
        load_settings(tmp_path)
    (tmp_path / "tidemark.toml").rmdir()
    (tmp_path / "tidemark.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_settings(tmp_path)
