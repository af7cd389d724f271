"""How clients reach the brokers: the settings of librdkafka, and those of the Java client inside Spark.

Both come from the same typed options. The login configuration is written here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.connectors.paths import local_path
from tidemark.errors import UsageError

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_WARNINGS = 4


def librdkafka_settings(options: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """For producers, consumers and administration in the driver."""
    security = options.get("security") or {}
    files = {name: str(local_path(security[name], base)) for name in ("ca", "cert", "key") if security.get(name)}
    settings = {
        "bootstrap.servers": options["servers"],
        "log_level": _WARNINGS,
        "security.protocol": security.get("protocol"),
        "sasl.mechanism": security.get("mechanism"),
        "sasl.username": security.get("username"),
        "sasl.password": security.get("password"),
        "ssl.ca.location": files.get("ca"),
        "ssl.certificate.location": files.get("cert"),
        "ssl.key.location": files.get("key"),
        "ssl.key.password": security.get("key_password"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def java_settings(options: Mapping[str, Any], base: Path, step: str) -> dict[str, str]:
    """For Spark's connector. Files go in as text, so that executors elsewhere need none."""
    security = options.get("security") or {}
    texts = {name: _text_of(security[name], base, step) for name in ("ca", "cert", "key") if security.get(name)}
    settings = {
        "bootstrap.servers": options["servers"],
        "security.protocol": str(security.get("protocol") or "plaintext").upper(),
        "sasl.mechanism": security.get("mechanism"),
        "sasl.jaas.config": login_configuration(security) if security.get("mechanism") else None,
        "ssl.truststore.type": "PEM" if "ca" in texts else None,
        "ssl.truststore.certificates": texts.get("ca"),
        "ssl.keystore.type": "PEM" if "cert" in texts else None,
        "ssl.keystore.certificate.chain": texts.get("cert"),
        "ssl.keystore.key": texts.get("key"),
        "ssl.key.password": security.get("key_password"),
        **(options.get("properties") or {}),
    }
    return {f"kafka.{name}": value for name, value in settings.items() if value is not None}


def login_configuration(security: Mapping[str, Any]) -> str:
    """One line of JAAS; a quote or backslash in a name or password stays what it is."""
    module = _LOGIN_MODULES[security["mechanism"]]
    return f"{module} required username={_quoted(security['username'])} password={_quoted(security['password'])};"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text_of(path: str, base: Path, step: str) -> str:
    try:
        return local_path(path, base).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{step}: {path} cannot be read: {error}", hint="correct the path", step=step) from error
