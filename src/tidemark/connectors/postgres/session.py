"""Connections of a PostgreSQL sink: made when needed, named, quick to notice that the server is gone."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tidemark.connectors.connector import SinkContext
from tidemark.connectors.postgres.ledger import session_name
from tidemark.errors import SinkMismatch

LOCK_TIMEOUT_SECONDS = 5.0
_CONNECTION = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# The server, too, is to notice a lost peer: the transaction that it left open holds the lock of the ledger.
_SETTINGS = (
    "-c timezone=UTC -c datestyle=ISO -c client_encoding=UTF8 -c lock_timeout={lock}ms "
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)


class Address:
    """The url of a sink, taken apart; its password is never shown, not even when the url is malformed."""

    def __init__(self, context: SinkContext) -> None:
        self._name = session_name(context)
        try:
            self._parts: dict[str, Any] = conninfo_to_dict(context.options["url"])
        except psycopg.ProgrammingError:
            raise SinkMismatch(
                "the url is no address of a PostgreSQL database",
                hint="write it as postgresql://user:password@host:5432/database",
                step=context.sink,
            ) from None

    @property
    def place(self) -> str:
        """Where the database is, for messages."""
        host, port = self._parts.get("host", "localhost"), self._parts.get("port", "5432")
        return f"{host}:{port}/{self._parts.get('dbname', '')}"

    def connect(self) -> psycopg.Connection:
        settings = _SETTINGS.format(lock=round(LOCK_TIMEOUT_SECONDS * 1000))
        parts = {
            **_CONNECTION,
            **self._parts,
            "application_name": self._name,
            "options": f"{self._parts.get('options', '')} {settings}".strip(),
        }
        return psycopg.connect(**parts, autocommit=True)
