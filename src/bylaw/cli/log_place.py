"""Which log a command is about, and whose part of it."""

from pathlib import Path
from typing import Annotated

from bylaw.errors import UsageError
from bylaw.record import Store, open_store

MOST = 5
"""Tenants that a message names at most."""

LogPlace = Annotated[str, "--log LOG", "The log: a file, or postgresql://..."]
Tenant = Annotated[str, "Whose part of the log."]


def existing(where: str) -> Store:
    """A log that is there: a wrong name must not make an empty one."""
    if "://" not in where and not Path(where).expanduser().is_file():
        raise UsageError("no such log", place=where)
    return open_store(where)


def refuse_stranger(store: Store, tenant: str, where: str) -> None:
    """A log of others must not look like an empty one."""
    if (known := store.tenants()) and tenant not in known:
        others = ", ".join(f"`{name}`" for name in known[:MOST]) + (" and more" if len(known) > MOST else "")
        hint = f"give --tenant with one of those it has: {others}"
        raise UsageError(f"the log has nothing of tenant `{tenant}`", place=where, hint=hint)
