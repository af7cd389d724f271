"""How a store of an older version becomes one of this version: a numbered list, each step run once and for all.

A released step is never edited; a change of the tables is a new step at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from tidemark.control_plane.store.schema import METADATA
from tidemark.errors import UsageError

Step = Callable[[sa.Connection], None]

_VERSION = sa.Table("store_version", sa.MetaData(), sa.Column("version", sa.Integer, nullable=False))


def _first_tables(connection: sa.Connection) -> None:
    METADATA.create_all(connection)


MIGRATIONS: tuple[Step, ...] = (_first_tables,)


def migrate(connection: sa.Connection, steps: tuple[Step, ...] = MIGRATIONS) -> int:
    """Brings the store to the newest version inside the caller's transaction; the version it has then."""
    _VERSION.create(connection, checkfirst=True)
    version = connection.scalar(sa.select(_VERSION.c.version))
    if version is None:
        connection.execute(sa.insert(_VERSION).values(version=0))
    if (version or 0) > len(steps):
        raise UsageError(
            f"the store is of version {version}, and this Tidemark knows versions up to {len(steps)}",
            hint="use the newer Tidemark that wrote it, or another TIDEMARK_HOME",
        )
    for step in steps[version or 0 :]:
        step(connection)
    connection.execute(sa.update(_VERSION).values(version=len(steps)))
    return len(steps)
