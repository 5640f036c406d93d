"""API keys: each belongs to one tenant and has one role, and only its hash is kept."""

import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from bylaw.errors import UsageError
from bylaw.record.entry import DEFAULT_TENANT

PREFIX = "bylaw_"

Role = Literal["decide", "approve"]
"""What a key is for: an agent's decisions and events, or a person's answers to what waits. No key is for both, so no
agent can approve its own calls."""


class Key(Struct, frozen=True):
    """Whose a key is, and what for."""

    tenant: str
    role: Role = "decide"


def new_key() -> str:
    """A key that nobody can guess, so a plain hash of it tells nothing."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def key_line(tenant: str, key: str, role: Role = "decide") -> str:
    """The line of a file of keys."""
    if not tenant or tenant.split() != [tenant]:
        raise UsageError(f"`{tenant}` is not a name for a tenant", hint="one word")
    return f"{tenant} {hash_of(key)}" + (f" {role}" if role != "decide" else "")


def read_keys(path: Path) -> dict[str, Key]:
    """A file of keys, one a line: the tenant, the key's hash, and `approve` for a person's. By hash whose it is."""
    found: dict[str, Key] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) == 2:
            words.append("decide")
        is_hash = len(words) == 3 and len(words[1]) == 64 and not set(words[1]) - set("0123456789abcdef")
        role = next((each for each in get_args(Role) if each == words[-1]), None)
        if not is_hash or role is None:
            hint = "a line is a tenant, the hash that `bylaw serve --new-key TENANT` prints, and maybe `approve`"
            raise UsageError("not a key", place=f"{path}:{number}", hint=hint)
        key = Key(words[0], role)
        if found.setdefault(words[1], key) != key:
            raise UsageError("one key for two tenants or two roles", place=f"{path}:{number}")
    if not found:
        raise UsageError("there is no key in the file", place=str(path))
    return found


def key_of(header: str, keys: Mapping[str, Key]) -> Key | None:
    """The key that an `Authorization` header bears; None for nobody's."""
    scheme, _, key = header.partition(" ")
    return keys.get(hash_of(key.strip())) if scheme.lower() == "bearer" else None


def tenant_of(header: str, keys: Mapping[str, Key]) -> str | None:
    """The tenant whose key a header bears; None for nobody's. Without keys all is one tenant's."""
    if not keys:
        return DEFAULT_TENANT
    key = key_of(header, keys)
    return key.tenant if key is not None else None


def may(header: str, keys: Mapping[str, Key], role: Role) -> bool:
    """Whether the key is for this; without keys everybody on the machine may do everything."""
    key = key_of(header, keys)
    return not keys or (key is not None and key.role == role)
