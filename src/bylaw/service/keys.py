"""API keys: each belongs to one tenant and has one role, and only its hash is kept."""

import hashlib
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.record.entry import DEFAULT_TENANT
from bylaw.text.visible import visible

PREFIX = "bylaw_"
NO_KEY = "-"
"""Stands in place of a hash for somebody whom only a proxy vouches for."""
LOOK = 1.0
"""Seconds after which it is looked whether a file of keys was changed."""

Role = Literal["decide", "approve", "review", "view"]
"""What a key is for: an agent's decisions and events; a person's answers to what waits, and stops; a person's notes and
drafts, which decide nothing; or only looking. No key is for both of the first two, so no agent can approve its own
calls."""


class Key(Struct, frozen=True):
    """Whose a key is, and what for."""

    tenant: str
    role: Role = "decide"
    name: str = ""
    """Who holds it, as the log tells of their answers."""


def new_key() -> str:
    """A key that nobody can guess, so a plain hash of it tells nothing."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def key_line(tenant: str, key: str, role: Role = "decide", name: str = "") -> str:
    """The line of a file of keys."""
    for word, what in ((tenant, "a tenant"), (name or "nobody", "whoever holds a key")):
        if not word or word.split() != [word] or not word.isprintable():
            raise UsageError(f"`{word}` is not a name for {what}", hint="one word")
    if name and role == "decide":
        raise UsageError("only a person's key has a name", hint="give --approver, --reviewer or --viewer too")
    return " ".join([tenant, hash_of(key), *([role] if role != "decide" else []), *([name] if name else [])])


def read_keys(path: Path) -> dict[str, Key]:
    """A file of keys, one a line: the tenant, the key's hash, for a person's the role and their name. By hash whose it
    is. A person whom only a proxy vouches for has `-` in place of a hash."""
    found: dict[str, Key] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) == 2:
            words.append("decide")
        is_hash = len(words) in (3, 4) and len(words[1]) == 64 and not set(words[1]) - set("0123456789abcdef")
        if len(words) == 4 and words[1] == NO_KEY:
            # No hash of a key looks like this, so no key opens it.
            words[1], is_hash = f"{NO_KEY} {words[0]} {words[3]}", True
        role = next((each for each in get_args(Role) if each == words[2]), None)
        if not is_hash or role is None or (len(words) == 4 and role == "decide"):
            hint = "a line is a tenant, the hash that `bylaw serve --new-key TENANT` prints, maybe a role and a name"
            raise UsageError("not a key", place=f"{path}:{number}", hint=hint)
        key = Key(words[0], role, words[3] if len(words) == 4 else "")
        if found.setdefault(words[1], key) != key:
            raise UsageError("one key for two tenants or two roles", place=f"{path}:{number}")
    if not found:
        raise UsageError("there is no key in the file", place=str(path))
    return found


class KeyFile(Mapping[str, Key]):
    """The keys of a file as it is now: one that was taken out of it is nobody's from then on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._stamp()
        self._keys = read_keys(path)
        self._looked = time.monotonic()

    def __getitem__(self, name: str) -> Key:
        if time.monotonic() - self._looked >= LOOK:
            self._look()
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def _look(self) -> None:
        """Read the file again where it was changed. While it cannot be read, those that were read last count."""
        self._looked = time.monotonic()
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._keys = read_keys(self._path)
        except (BylawError, OSError, UnicodeError) as error:
            print(visible(f"bylaw: the keys stay as they were: {error}"), file=sys.stderr, flush=True)

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0, 0
        return found.st_mtime_ns, found.st_size, found.st_ino


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The `Authorization` header of a request; of two, which a gateway and we might tell apart otherwise, neither."""
    found = [value for name, value in headers if name.lower() == b"authorization"]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def key_of(header: str, keys: Mapping[str, Key]) -> Key | None:
    """The key that an `Authorization` header bears; None for nobody's."""
    scheme, _, key = header.partition(" ")
    return keys.get(hash_of(key.strip())) if scheme.lower() == "bearer" else None


def person_named(name: str, keys: Mapping[str, Key]) -> Key | None:
    """The person of that name; None where there is none, or where the file does not tell one from another."""
    found = {key for key in keys.values() if name and key.name == name and key.role != "decide"}
    return found.pop() if len(found) == 1 else None


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


def holder_of(header: str, keys: Mapping[str, Key], said: str) -> str:
    """Who answers: whoever holds the key, by its name or the beginning of its hash; without keys, who they say."""
    key = key_of(header, keys)
    if key is None:
        return said
    if key.name and said not in ("", key.name):
        raise UsageError(f"this key is that of `{key.name}`, not of `{said}`", hint="leave `by` out")
    own = f"key {hash_of(header.partition(' ')[2].strip())[:8]}"
    return key.name or (f"{own}, as {said}" if said else own)
