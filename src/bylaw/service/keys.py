"""API keys. Each key has a tenant and a role. Only hashes of keys are stored."""

import hashlib
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.text.visible import visible

PREFIX = "bylaw_"
NO_KEY = "-"
"""Takes the place of the hash of a key for a person who is identified only by a proxy."""
LOOK = 1.0
"""How often the key file is checked for changes, in seconds."""

Role = Literal["decide", "approve", "review", "view"]
"""What the holder of a key may do.

`decide`: send an agent's events and get decisions. `approve`: answer approvals and add stops. `review`: write notes and
drafts. `view`: read. No key has both `decide` and `approve`, so an agent cannot approve its own calls.
"""


class Key(Struct, frozen=True):
    """A key's tenant, role and holder."""

    tenant: str
    role: Role = "decide"
    name: str = ""
    """The holder's name, as written to the log."""


def new_key() -> str:
    """Return a new random key. It is so long that its hash needs no salt."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def key_line(tenant: str, key: str, role: Role = "decide", name: str = "") -> str:
    for word, what in ((tenant, "a tenant"), (name or "nobody", "a key's owner")):
        if not word or word.split() != [word] or not word.isprintable():
            raise UsageError(f"`{word}` is not a valid name for {what}", hint="use one word")
    if name and role == "decide":
        raise UsageError("only a person's key can have a name", hint="add --approver, --reviewer or --viewer")
    return " ".join([tenant, hash_of(key), *([role] if role != "decide" else []), *([name] if name else [])])


def read_keys(path: Path) -> dict[str, Key]:
    """Read a key file and return its keys, keyed by their hashes.

    Each line has a tenant and the hash of a key. A person's line also has a role and a name. If the person is
    identified only by a proxy, the line has `-` in place of the hash.
    """
    found: dict[str, Key] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) == 2:
            words.append("decide")
        is_hash = len(words) in (3, 4) and len(words[1]) == 64 and not set(words[1]) - set("0123456789abcdef")
        if len(words) == 4 and words[1] == NO_KEY:
            # Hashes have a different form, so no key ever matches this.
            words[1], is_hash = f"{NO_KEY} {words[0]} {words[3]}", True
        role = next((each for each in get_args(Role) if each == words[2]), None)
        if not is_hash or role is None or (len(words) == 4 and role == "decide"):
            hint = (
                "write a tenant and the hash from `bylaw serve --new-key TENANT`; for a person, add a role and a name"
            )
            raise UsageError("this line is not a key", place=f"{path}:{number}", hint=hint)
        key = Key(words[0], role, words[3] if len(words) == 4 else "")
        if found.setdefault(words[1], key) != key:
            raise UsageError("this key appears with two tenants, roles or names", place=f"{path}:{number}")
    if not found:
        raise UsageError("the file contains no keys", place=str(path))
    return found


class KeyFile(Mapping[str, Key]):
    """The current keys in a file. A key is invalid as soon as it is removed from the file."""

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
        """Reload the file if it has changed. If it cannot be read, the last known keys remain valid."""
        self._looked = time.monotonic()
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._keys = read_keys(self._path)
        except (BylawError, OSError, UnicodeError) as error:
            print(visible(f"bylaw: the keys were not reloaded: {error}"), file=sys.stderr, flush=True)

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0, 0
        return found.st_mtime_ns, found.st_size, found.st_ino


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the request's `Authorization` header.

    If there is more than one, return an empty string, because a gateway may have checked a different one from the one
    read here.
    """
    found = [value for name, value in headers if name.lower() == b"authorization"]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def key_of(header: str, keys: Mapping[str, Key]) -> Key | None:
    """Return the key that an `Authorization` header contains, or None if the key is unknown."""
    scheme, _, key = header.partition(" ")
    return keys.get(hash_of(key.strip())) if scheme.lower() == "bearer" else None


def person_named(name: str, keys: Mapping[str, Key]) -> Key | None:
    """Return the key of the person with this name. None if no person, or more than one, has the name."""
    found = {key for key in keys.values() if name and key.name == name and key.role != "decide"}
    return found.pop() if len(found) == 1 else None


def holder_of(header: str, keys: Mapping[str, Key], said: str) -> str:
    """Return the name under which an answer is logged.

    It is the name of the key or, if the key has none, the start of its hash. Without keys, it is the given name.
    """
    key = key_of(header, keys)
    if key is None:
        return said
    if key.name and said not in ("", key.name):
        raise UsageError(f"this key belongs to `{key.name}`, not to `{said}`", hint="omit `by`")
    own = f"key {hash_of(header.partition(' ')[2].strip())[:8]}"
    return key.name or (f"{own}, as {said}" if said else own)
