"""Which log a command is about, and whose part of it."""

from pathlib import Path

import click

from bylaw.errors import UsageError
from bylaw.record import Store, open_store
from bylaw.record.entry import DEFAULT_TENANT

MOST = 5
"""Tenants that a message names at most."""

log_option = click.option("--log", "where", metavar="LOG", required=True, help="The log: a file, or postgresql://...")
tenant_option = click.option("--tenant", default=DEFAULT_TENANT, help="Whose part of the log.")


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
