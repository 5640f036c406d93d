"""The key that signs removals. It is kept outside the database, so that a writer of the database cannot forge one."""

import hmac
import os
from hashlib import sha256
from pathlib import Path

from bylaw.errors import UsageError

VARIABLE = "BYLAW_SIGNING_KEY"
SHORTEST = 32
"""Bytes a key must have."""
MAKE_ONE = "make one with `openssl rand -hex 32`, and keep it away from the database"


def read_key(path: Path | None) -> bytes | None:
    """The key in a file, or else in the environment variable; None if there is neither."""
    if path is None:
        key, place = os.environ.get(VARIABLE, "").encode(), f"${VARIABLE}"
    else:
        try:
            key, place = path.read_bytes(), str(path)
        except OSError as error:
            raise UsageError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=str(path)) from None
    key = key.strip()
    if not key and path is None:
        return None
    if len(key) < SHORTEST:
        raise UsageError(f"a signing key has at least {SHORTEST} bytes", place=place, hint=MAKE_ONE)
    return key


def sign(key: bytes, tenant: str, number: int, before: bytes, body: bytes) -> str:
    """The signature of an entry's body, bound to its place: the entry's number and the hash of the entry before it."""
    place = f"{tenant}\0{number}\0{before.hex()}\0".encode()
    return hmac.new(key, place + body, sha256).hexdigest()


def is_signed(signature: str, key: bytes, tenant: str, number: int, before: bytes, body: bytes) -> bool:
    return hmac.compare_digest(signature, sign(key, tenant, number, before, body))
