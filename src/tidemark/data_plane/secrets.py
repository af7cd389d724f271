"""`$NAME` in a string option takes an environment variable, at the last moment and only in the driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidemark.errors import SettingMissing

_NAME = re.compile(r"\$([A-Z_][A-Z0-9_]*)")


def resolve(value: Any, environment: Mapping[str, str], step: str) -> Any:
    """The value with every `$NAME` replaced, through lists and mappings; raises SettingMissing by name."""
    if isinstance(value, str):
        return _NAME.sub(lambda match: _lookup(match.group(1), environment, step), value)
    if isinstance(value, Mapping):
        return {key: resolve(item, environment, step) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, environment, step) for item in value]
    return value


def _lookup(name: str, environment: Mapping[str, str], step: str) -> str:
    if name not in environment:
        raise SettingMissing(
            f"{step}: the environment variable {name} is not set", hint=f"set {name} before starting the job", step=step
        )
    return environment[name]
