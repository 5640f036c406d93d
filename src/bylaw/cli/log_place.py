"""Which log a command is about, and whose part of it."""

from pathlib import Path
from typing import Annotated

from bylaw.cli.given import File
from bylaw.errors import UsageError
from bylaw.record import Store, open_store
from bylaw.record.signing import MAKE_ONE, VARIABLE, read_key

MOST = 5
"""Tenants that a message names at most."""

LogPlace = Annotated[str, "--log LOG", "The log: a file, or postgresql://..."]
Tenant = Annotated[str, "Whose part of the log."]
Anchors = Annotated[File, "The file that `bylaw serve` writes anchors to; by default LOG.anchors, if it exists."]
SigningKey = Annotated[File, f"The key that removals are signed with; by default the value of ${VARIABLE}."]


def required_key(path: Path | None) -> bytes:
    """The signing key; an error says how to make one."""
    if (key := read_key(path)) is None:
        raise UsageError(
            "removals are signed, and there is no key", hint=f"give --signing-key or ${VARIABLE}; {MAKE_ONE}"
        )
    return key


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
