"""`$NAME` in a string option takes a variable or a stored secret, at the last moment and only in the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.errors import SettingMissing
from tidemark.stored_secrets import REFERENCE


def resolve(value: Any, variables: Mapping[str, str], step: str) -> Any:
    """The value with every `$NAME` replaced, through lists and mappings; raises SettingMissing by name."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda match: _lookup(match.group(1), variables, step), value)
    if isinstance(value, Mapping):
        return {key: resolve(item, variables, step) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, variables, step) for item in value]
    return value


def _lookup(name: str, variables: Mapping[str, str], step: str) -> str:
    if name not in variables:
        raise SettingMissing(
            f"{step}: there is neither an environment variable nor a stored secret {name}",
            hint=f"set {name} before starting the job, or store it with `tidemark secrets set {name}`",
            step=step,
        )
    return variables[name]
