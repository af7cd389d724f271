"""What a user may set once for all jobs: `TIDEMARK_*` variables, then `tidemark.toml`, then the defaults here.

A job's own `$NAME` references are not settings; the data plane resolves those.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tidemark.errors import UsageError

FILE = "tidemark.toml"
MEMORY = r"^[1-9][0-9]*[kmgt]$"


class Settings(BaseSettings):
    """`home` is where runs keep their data; `master` and `driver_memory` go to Spark.

    The server listens on `host` and `port`; clients find it by `server`, else in the home, and send `token`.
    """

    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", extra="forbid", frozen=True)

    home: Path = Path(".tidemark")
    master: str = Field("local[*,4]", min_length=1)
    driver_memory: str = Field("2g", pattern=MEMORY)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    host: str = Field("127.0.0.1", min_length=1)
    port: int = Field(8620, ge=0, le=65535)
    max_jobs: int = Field(50, ge=1)
    requests_per_second: int = Field(500, ge=1)
    savepoints_kept: int | None = Field(None, ge=1)
    allowed_roots: tuple[Path, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    server: str | None = None
    token: SecretStr | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings


def load_settings(folder: Path) -> Settings:
    """The settings in force in `folder`; a relative `home` is taken from there."""
    values = _read_file(folder / FILE)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise UsageError(_first_problem(error), hint=f"settings come from TIDEMARK_* variables and {FILE}") from None
    return settings.model_copy(update={"home": Path(os.path.abspath(folder / settings.home.expanduser()))})


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}", hint="correct the file or remove it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="correct or remove it") from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown setting {name!r}; there are {', '.join(Settings.model_fields)}"
    return f"setting {name!r} is wrong: {problem['msg']}"
