"""API keys: each belongs to one tenant, and only its hash is kept."""

import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path

from bylaw.errors import UsageError
from bylaw.record.entry import DEFAULT_TENANT

PREFIX = "bylaw_"


def new_key() -> str:
    """A key that nobody can guess, so a plain hash of it tells nothing."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def key_line(tenant: str, key: str) -> str:
    """The line of a file of keys."""
    if not tenant or tenant.split() != [tenant]:
        raise UsageError(f"`{tenant}` is not a name for a tenant", hint="one word")
    return f"{tenant} {hash_of(key)}"


def read_keys(path: Path) -> dict[str, str]:
    """A file of keys, one a line: the tenant, then the key's hash. By hash the tenant."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or len(words[1]) != 64 or set(words[1]) - set("0123456789abcdef"):
            hint = "a line is a tenant and the hash that `bylaw serve --new-key TENANT` prints"
            raise UsageError("not a key", place=f"{path}:{number}", hint=hint)
        if found.setdefault(words[1], words[0]) != words[0]:
            raise UsageError("one key for two tenants", place=f"{path}:{number}")
    if not found:
        raise UsageError("a file of keys without a key", place=str(path))
    return found


def tenant_of(header: str, keys: Mapping[str, str]) -> str | None:
    """The tenant whose key an `Authorization` header bears; None for nobody's. Without keys all is one tenant's."""
    if not keys:
        return DEFAULT_TENANT
    scheme, _, key = header.partition(" ")
    return keys.get(hash_of(key.strip())) if scheme.lower() == "bearer" else None
